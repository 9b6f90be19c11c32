-- The first answer carries a cookie; every request after it shows it.
local token

request = function()
  local headers = {}
  if token then headers["Cookie"] = token end
  return wrk.format("GET", token and "/hw" or "/cookie?set=colour=blue", headers)
end

response = function(status, headers, body)
  if not token then
    local cookie = headers["Set-Cookie"] or headers["set-cookie"]
    token = cookie and cookie:match("^[^;]+")
    print("token " .. tostring(token) .. " after " .. status)
  end
end
