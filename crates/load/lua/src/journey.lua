-- What a script that makes a journey finds: users, whose calls wait for their responses. Each
-- iteration is a coroutine that yields a request and is resumed with what came back. `native` is what
-- only the program can do: URLs and JSON.
local native, steps, given = ...

local rows, names = {}, table.concat(steps, ", ")
for row, name in ipairs(steps) do rows[name] = row - 1 end

-- By number: the user's object, its coroutine, its random numbers, what it said since it went on.
local users = {}
-- The one whose coroutine goes on.
local running

-- Random numbers: sfc32 by Chris Doty-Humphrey (PractRand), 32 bits at a time.
local bit = require("bit")
local tobit, rol, bxor = bit.tobit, bit.rol, bit.bxor
local lshift, rshift = bit.lshift, bit.rshift

local function next_bits(state)
  local a, b, c, count = state[1], state[2], state[3], state[4]
  local drawn = tobit(tobit(a + b) + count)
  state[1] = bxor(b, rshift(b, 9))
  state[2] = tobit(c + lshift(c, 3))
  state[3] = tobit(rol(c, 21) + drawn)
  state[4] = tobit(count + 1)
  return drawn
end

local function generator(a, b, c)
  local state = { tobit(a), tobit(b), tobit(c), 1 }
  for _ = 1, 12 do next_bits(state) end
  return state
end

local function unit(state)
  local high, low = rshift(next_bits(state), 5), rshift(next_bits(state), 6)
  -- tobit gives what is above 2^31 as negative; the shifts have taken that away
  return (high * 67108864 + low) / 9007199254740992
end

local plain_random = math.random

-- Of the user whose journey goes on, so that what it draws does not depend on the others.
function math.random(low, high)
  if not running then
    if low and high then return plain_random(low, high) end
    if low then return plain_random(low) end
    return plain_random()
  end
  local drawn = unit(running.random)
  if not low then return drawn end
  if not high then low, high = 1, low end
  if low > high then error("bad arguments to 'random' (the interval is empty)", 2) end
  return low + math.floor(drawn * (high - low + 1))
end

local Response = {}
Response.__index = Response

-- The body as JSON, as Lua's values; nil and why where it is none. JSON's null is nil.
function Response:json() return native.decode(self.body) end

local User = {}
User.__index = User

local function record_of(user)
  local record = users[user.number]
  if not record or record.user ~= user then return nil, "this is no user of the run" end
  if running ~= record or coroutine.running() ~= record.thread then
    return nil, "a user's calls are made in its own journey, by journey(user) itself"
  end
  return record
end

local OPTIONS = {
  name = true, headers = true, query = true, body = true, json = true, form = true,
  expect = true, follow = true,
}

-- How often redirects are followed with `follow = true`.
local FOLLOWED = 10

-- What describes a request's content, and goes with it where a redirect asks for another by GET.
local OF_CONTENT = {
  ["content-type"] = true, ["content-length"] = true, ["content-encoding"] = true,
  ["content-language"] = true, ["content-location"] = true, digest = true,
  ["last-modified"] = true, ["transfer-encoding"] = true,
}

local REDIRECTS = { [301] = true, [302] = true, [303] = true, [307] = true, [308] = true }

-- The request's body and its media type; or nil, nil and why.
local function content(options)
  local count = (options.body ~= nil and 1 or 0) + (options.json ~= nil and 1 or 0)
    + (options.form ~= nil and 1 or 0)
  if count > 1 then return nil, nil, "body, json and form are one thing: give one of them" end
  if options.json ~= nil then
    local text, why = native.encode(options.json)
    return text, "application/json", why
  end
  if options.form ~= nil then
    local text, why = native.form(options.form)
    return text, "application/x-www-form-urlencoded", why
  end
  if options.body == nil then return nil end
  if type(options.body) ~= "string" and type(options.body) ~= "number" then
    return nil, nil, "body is a text"
  end
  return tostring(options.body)
end

-- Fields as a list of name, value, name, value, in the order of their names.
local function fields(headers, media_type)
  local list, sorted, typed = {}, {}, false
  if headers ~= nil and type(headers) ~= "table" then return nil, "headers is a table" end
  for name in pairs(headers or {}) do
    if type(name) ~= "string" then return nil, "headers is a table of name = value" end
    typed = typed or name:lower() == "content-type"
    sorted[#sorted + 1] = name
  end
  table.sort(sorted)
  for _, name in ipairs(sorted) do
    list[#list + 1] = name
    list[#list + 1] = tostring(headers[name])
  end
  if media_type and not typed then
    list[#list + 1] = "Content-Type"
    list[#list + 1] = media_type
  end
  return list
end

local function row_of(name)
  if name == nil and #steps == 1 then return 0 end
  if name == nil then return nil, "give name, which is one of the steps: " .. names end
  local row = rows[name]
  if row then return row end
  return nil, string.format("%q is not in steps, which are: %s", tostring(name), names)
end

local function statuses(expect)
  if expect == nil then return nil end
  local list = type(expect) == "table" and expect or { expect }
  for _, status in ipairs(list) do
    if type(status) ~= "number" or status < 100 or status > 999 or status % 1 ~= 0 then
      return nil, "expect is a status, or a list of them"
    end
  end
  if #list == 0 then return nil, "expect names no status" end
  return list
end

local function request_of(method, url, options)
  if type(options) ~= "table" then return nil, "options are a table" end
  for name in pairs(options) do
    if not OPTIONS[name] then return nil, "there is no option " .. tostring(name) end
  end
  if type(url) ~= "string" then return nil, "a URL is a text, not " .. type(url) end
  local request, media_type, why = { method = method }, nil, nil
  request.step, why = row_of(options.name)
  if not request.step then return nil, why end
  request.url, why = native.resolve(nil, url, options.query)
  if not request.url then return nil, why end
  request.body, media_type, why = content(options)
  if why then return nil, why end
  request.headers, why = fields(options.headers, media_type)
  if why then return nil, why end
  request.statuses, why = statuses(options.expect)
  if why then return nil, why end
  return request
end

local function ask(record, request)
  record.request = request
  return coroutine.yield(request)
end

local function fail(record, message)
  record.failure = record.failure or tostring(message)
end

local function is_among(list, status)
  for _, one in ipairs(list) do
    if one == status then return true end
  end
  return false
end

-- The request that a redirect asks for (RFC 9110 section 15.4).
local function redirected(request, response)
  local url, why = native.resolve(request.url, response.headers.location, nil)
  if not url then return nil, why end
  local method, body, headers = request.method, request.body, request.headers
  local changes = response.status == 303 or (method == "POST" and response.status < 303)
  if changes and method ~= "HEAD" then
    method, body = "GET", nil
    local kept = {}
    for at = 1, #headers, 2 do
      if not OF_CONTENT[headers[at]:lower()] then
        kept[#kept + 1], kept[#kept + 2] = headers[at], headers[at + 1]
      end
    end
    headers = kept
  end
  return {
    method = method, url = url, body = body, headers = headers,
    step = request.step, statuses = request.statuses,
  }
end

-- Goes where redirects lead, each as a call of its own.
local function follow(record, request, response, left)
  while REDIRECTS[response.status] and response.headers.location do
    if left < 1 then
      fail(record, "there are more redirects than follow allows")
      return response
    end
    left = left - 1
    local next, why = redirected(request, response)
    if not next then
      fail(record, "a redirect: " .. why)
      return response
    end
    request = next
    response, why = ask(record, request)
    if why then return nil, why end
  end
  return response
end

local function perform(user, method, url, options)
  local record, why = record_of(user)
  if not record then error(why, 3) end
  options = options or {}
  local request
  request, why = request_of(method, url, options)
  if not request then error(why, 3) end
  local left = options.follow == true and FOLLOWED or options.follow or 0
  -- neither math.huge nor 0/0 has a remainder that is 0
  if type(left) ~= "number" or not (left >= 0 and left % 1 == 0) then
    error("follow is true, or how many redirects are followed at most", 3)
  end
  local wanted = request.statuses
  if left > 0 and wanted then
    -- redirects on the way are no failures
    request.statuses = { 301, 302, 303, 307, 308, unpack(wanted) }
  end
  local response
  response, why = ask(record, request)
  if not why and left > 0 then response, why = follow(record, request, response, left) end
  if why then error(why, 3) end
  if left > 0 and wanted and response.status > 0 and not is_among(wanted, response.status) then
    fail(record, "the status is " .. response.status)
  end
  return response
end

-- No tail calls: the line of an error is two levels up.
function User:request(method, url, options)
  if type(method) ~= "string" then error("a method is a text", 2) end
  return (perform(self, method, url, options))
end

for _, method in ipairs({ "get", "head", "post", "put", "patch", "delete" }) do
  local upper = method:upper()
  User[method] = function(self, url, options) return (perform(self, upper, url, options)) end
end

local SOCKET_OPTIONS = {
  connect = { name = true, headers = true, query = true },
  send = {
    name = true, json = true, binary = true, expect = true,
  },
  expect = { name = true, contains = true, json = true, count = true, timeout = true },
  close = { name = true },
}

-- Adds what a call waits for: messages with a text in them, with values at JSON pointers.
local function awaited(socket, rule)
  if type(rule) ~= "table" then return "expect is a table" end
  for name in pairs(rule) do
    if not SOCKET_OPTIONS.expect[name] then return "expect has no option " .. tostring(name) end
  end
  local count = rule.count or 1
  if type(count) ~= "number" or count < 1 or count > 1e6 or count % 1 ~= 0 then
    return "count is a number from 1 to 1000000"
  end
  if rule.timeout ~= nil and not (type(rule.timeout) == "number" and rule.timeout > 0) then
    return "timeout is a number of seconds above 0"
  end
  if rule.contains ~= nil and type(rule.contains) ~= "string" then return "contains is a text" end
  if rule.json ~= nil and type(rule.json) ~= "table" then
    return "json is a table of pointer = value"
  end
  for pointer in pairs(rule.json or {}) do
    if type(pointer) ~= "string" then return "json is a table of pointer = value" end
  end
  socket.count, socket.timeout = count, rule.timeout
  socket.contains, socket.json = rule.contains, rule.json
end

-- A call on the user's WebSocket; `fill` completes it, or returns what is wrong.
local function on_socket(user, kind, options, fill)
  local record, why = record_of(user)
  if not record then error(why, 3) end
  options = options or {}
  if type(options) ~= "table" then error("options are a table", 3) end
  for name in pairs(options) do
    if not SOCKET_OPTIONS[kind][name] then error("there is no option " .. tostring(name), 3) end
  end
  local request = { method = "GET", headers = {}, socket = { kind = kind } }
  request.step, why = row_of(options.name)
  if why then error(why, 3) end
  request.url, why = native.resolve_socket("", nil)
  if why then error(why, 3) end
  why = fill(request, options)
  if why then error(why, 3) end
  local response
  response, why = ask(record, request)
  if why then error(why, 3) end
  return response
end

-- Opens a WebSocket in place of the one that is open; the response is the server's 101.
function User:connect(url, options)
  return (on_socket(self, "connect", options, function(request, given)
    if type(url) ~= "string" then return "a URL is a text, not " .. type(url) end
    local why
    request.url, why = native.resolve_socket(url, given.query)
    if why then return why end
    request.headers, why = fields(given.headers)
    return why
  end))
end

-- Sends a message. With `expect` the call waits for the answer and returns it.
function User:send(message, options)
  return (on_socket(self, "send", options, function(request, given)
    if given.json ~= nil then
      if message ~= nil then return "give a message, or json" end
      local why
      message, why = native.encode(given.json)
      if why then return why end
    end
    if type(message) ~= "string" and type(message) ~= "number" then return "a message is a text" end
    request.body = tostring(message)
    request.socket.text = not given.binary
    request.socket.awaits = given.expect ~= nil
    if given.expect ~= nil then return awaited(request.socket, given.expect) end
  end))
end

-- Waits for messages of the server; returns the last of them.
function User:expect(rule)
  return (on_socket(self, "expect", rule, function(request, given)
    local own = {}
    for name, value in pairs(given) do own[name] = value end
    own.name = nil
    return awaited(request.socket, own)
  end))
end

-- Closes the WebSocket and waits for the server's close frame.
function User:close(code, options)
  return (on_socket(self, "close", options, function(request)
    code = code or 1000
    local sendable = type(code) == "number" and code % 1 == 0
      and (code == 1000 or code == 1001 or code == 1003 or (code >= 1007 and code <= 1011)
        or (code >= 3000 and code <= 4999))
    if not sendable then
      return "a close code is 1000, 1001, 1003, 1007 to 1011, or one from 3000 to 4999"
    end
    request.socket.code = code
  end))
end

-- The user waits before its next call.
function User:sleep(seconds)
  local record, why = record_of(self)
  if not record then error(why, 2) end
  if type(seconds) ~= "number" or not (seconds >= 0 and seconds < math.huge) then
    error("sleep takes a number of seconds", 2)
  end
  record.wait = record.wait + seconds
end

-- The call that ended last has failed.
function User:fail(message)
  local record, why = record_of(self)
  if not record then error(why, 2) end
  fail(record, message or "user:fail()")
end

-- Counted, and no failure; gives back whether it is so.
function User:check(met, message)
  local record, why = record_of(self)
  if not record then error(why, 2) end
  local checks = record.checks or {}
  record.checks = checks
  checks[#checks + 1] = met and true or tostring(message or "user:check()")
  return met and true or false
end

-- A variable, a column of a feeder, or what the setup captured.
function User:value(name)
  local record, why = record_of(self)
  if not record then error(why, 2) end
  local value = record.values[name]
  if value == nil then value = given[name] end
  if value == nil then error("there is no value " .. tostring(name), 2) end
  return value
end

-- FILE:LINE: in front of what an error says, unless it is there.
local function told(thread, what)
  local text = tostring(what)
  if text:match("^[^\n]-:%d+: ") then return text end
  for level = 0, 100 do
    local at = debug.getinfo(thread, level, "Sl")
    if not at then break end
    if at.currentline > 0 and at.source:sub(1, 1) == "@" then
      return string.format("%s:%d: %s", at.short_src, at.currentline, text)
    end
  end
  return text
end

-- One table for all acts of this worker: it is read before the next.
local act = {}

local function go_on(record, ...)
  running = record
  local alive, request = coroutine.resume(record.thread, ...)
  running = nil
  act.wait, act.failure, act.checks = record.wait, record.failure, record.checks
  act.request, act.why = nil, nil
  record.wait, record.failure, record.checks = 0, nil, nil
  if not alive then
    act.why = told(record.thread, request)
    record.thread = nil
  elseif coroutine.status(record.thread) == "dead" then
    record.thread = nil
  elseif request == nil or request ~= record.request then
    act.why = told(record.thread, "a journey waits by its user's calls alone, and not by coroutine.yield")
    record.thread = nil
  else
    act.request = request
  end
  record.request = nil
  return act
end

local ways = {}

-- The user begins an iteration; a, b, c: the seed of its random numbers.
function ways.begin(number, iteration, values, a, b, c)
  local record = users[number]
  if not record then
    record = { user = setmetatable({ number = number }, User), random = generator(a, b, c), wait = 0 }
    users[number] = record
  end
  record.values, record.user.iteration = values, iteration
  record.wait, record.failure, record.checks, record.request = 0, nil, nil, nil
  record.thread = coroutine.create(journey)
  return go_on(record, record.user)
end

-- The user's call has ended.
function ways.resume(number, status, headers, body, seconds, failure)
  local record = users[number]
  if not record or not record.thread then return nil end
  local response = setmetatable(
    { status = status, headers = headers, body = body, time = seconds, error = failure }, Response)
  return go_on(record, response)
end

-- The user's call could not be made.
function ways.refuse(number, why)
  local record = users[number]
  if not record or not record.thread then return nil end
  return go_on(record, nil, why)
end

function ways.leave_off(number)
  local record = users[number]
  if record then record.thread = nil end
end

function ways.forget(number) users[number] = nil end

function ways.flush() io.stdout:flush() end

return ways
