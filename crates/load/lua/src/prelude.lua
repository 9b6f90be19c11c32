-- What every script finds in the table `wrk`. The program has put scheme, host, port, path and
-- headers into it before. `native` is what only the program can do: it knows addresses as text.
local native = ...

wrk.method = "GET"

-- An object as wrk's are: neither a table nor to be looked into.
local function object(meta)
  local made = newproxy(true)
  for name, value in pairs(meta) do getmetatable(made)[name] = value end
  return made
end

local texts = setmetatable({}, { __mode = "k" })

local function address(text)
  if not text then return nil end
  -- as wrk shows an address: IPv6 without its brackets
  local shown = text:gsub("[%[%]]", "")
  local made = object({ __tostring = function() return shown end })
  texts[made] = text
  return made
end

local function text_of(address)
  return texts[address] or error("not an address of wrk.lookup", 3)
end

function wrk.lookup(host, service)
  local found = native.lookup(host, service)
  for row, text in ipairs(found) do found[row] = address(text) end
  return found
end

function wrk.connect(address) return native.connect(text_of(address)) end

-- The addresses that can be connected to, in `wrk.addrs`.
function wrk.resolve(host, service)
  local found = wrk.lookup(host, service)
  local reached = {}
  for _, address in ipairs(found) do
    if wrk.connect(address) then reached[#reached + 1] = address end
  end
  wrk.addrs = reached
end

function wrk.setup(thread)
  thread.addr = wrk.addrs[1]
  if type(setup) == "function" then setup(thread) end
end

function wrk.init(args)
  if not wrk.headers["Host"] then
    local host = wrk.host
    if host:find(":", 1, true) then host = "[" .. host .. "]" end
    if wrk.port then host = host .. ":" .. wrk.port end
    wrk.headers["Host"] = host
  end
  if type(init) == "function" then init(args) end
  local text = wrk.format()
  wrk.request = function() return text end
end

-- Used again for each request; what lies beyond the last line of one is not looked at.
local lines = {}

-- A request as text; what is not given comes from the table.
function wrk.format(method, path, headers, body)
  headers = headers or wrk.headers
  body = body or wrk.body
  if not headers["Host"] then headers["Host"] = wrk.headers["Host"] end
  -- a number has the length of its text
  headers["Content-Length"] = body and string.len(body)
  lines[1] = string.format("%s %s HTTP/1.1", method or wrk.method, path or wrk.path)
  local count = 1
  for name, value in pairs(headers) do
    count = count + 1
    lines[count] = name .. ": " .. tostring(value)
  end
  lines[count + 1] = ""
  lines[count + 2] = body or ""
  return table.concat(lines, "\r\n", 1, count + 2)
end

-- The way from the program into the script: its functions may be replaced while the run goes on.
return {
  request = function()
    if type(request) == "function" then return request() end
    return wrk.request()
  end,
  response = function(status, headers, body) return response(status, headers, body) end,
  delay = function() return delay() end,
  flush = function() io.stdout:flush() end,

  -- A thread: its methods, and its address.
  thread = function(methods, peer, set_peer)
    return object({
      __index = function(_, name)
        if name == "addr" then return address(peer()) end
        return methods[name]
      end,
      __newindex = function(_, name, value)
        if name ~= "addr" then error("a thread has no field " .. tostring(name), 2) end
        set_peer(text_of(value))
      end,
    })
  end,

  -- Recorded values: figures by name, by percentile, and by row with their counts.
  spread = function(figures, rows, row, percentile)
    figures.percentile = function(_, percent) return percentile(percent) end
    return object({
      __index = function(_, name)
        -- as before wrk 4, and as wrk2: a number in brackets gives the value alone
        if type(name) == "number" then return (row(name)) end
        return figures[name]
      end,
      __call = function(_, number) return row(number) end,
      __len = function() return rows end,
    })
  end,
}
