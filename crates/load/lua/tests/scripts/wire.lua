-- Shows what arrived at the server: the answer's body is the request.
local shown = false

wrk.method = "PUT"
wrk.body = "line one\nline two"
wrk.headers["X-Two"] = "2"

function response(status, headers, body)
  if not shown then
    shown = true
    local lines = {}
    for line in body:gmatch("[^\r\n]+") do lines[#lines + 1] = line end
    table.sort(lines)
    print(table.concat(lines, "\n"))
    wrk.thread:stop()
  end
end
