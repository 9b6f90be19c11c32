-- What the threads counted comes together at the end.
local threads = {}

function setup(thread)
  thread:set("id", #threads + 1)
  table.insert(threads, thread)
end

function init(args)
  requests, responses = 0, 0
  print("thread " .. id .. " created, " .. #args .. " arguments, " .. tostring(args[1]))
end

function request()
  requests = requests + 1
  return wrk.request()
end

function response(status, headers, body)
  responses = responses + 1
end

function done(summary, latency, requests)
  for _, thread in ipairs(threads) do
    local sent, got = thread:get("requests"), thread:get("responses")
    print(("thread %d: answers missing %s"):format(thread:get("id"), tostring(sent - got > 6)))
  end
  print("all there " .. tostring(summary.requests > 0))
end
