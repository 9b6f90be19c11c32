-- A path of its own for each request.
local count = 0

request = function()
  count = count + 1
  return wrk.format("GET", "/hw?" .. count, { ["X-Counter"] = tostring(count) })
end
