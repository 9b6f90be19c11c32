-- Threads take the addresses in turn.
local addresses
local next_one = 0

function setup(thread)
  if not addresses then
    addresses = wrk.lookup(wrk.host, wrk.port or wrk.scheme)
    for row = #addresses, 1, -1 do
      if not wrk.connect(addresses[row]) then table.remove(addresses, row) end
    end
  end
  thread.addr = addresses[next_one % #addresses + 1]
  next_one = next_one + 1
end

function init(args)
  print("thread goes to " .. tostring(wrk.thread.addr))
end
