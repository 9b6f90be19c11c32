-- A report of one's own.
done = function(summary, latency, requests)
  io.write("------------------------------\n")
  for _, p in ipairs({ 50, 90, 99, 99.999 }) do
    io.write(("%g%%,%d\n"):format(p, latency:percentile(p)))
  end
  io.write(("order %s\n"):format(tostring(latency.min <= latency.mean and latency.mean <= latency.max)))
  io.write(("spread %s\n"):format(tostring(latency.stdev >= 0 and #latency >= 1)))
  local value, count = latency(1)
  io.write(("first %s %s\n"):format(tostring(value == latency.min), tostring(count >= 1)))
  io.write(("rate %s\n"):format(tostring(requests.max >= requests.min)))
  io.write(("bytes each %g\n"):format(summary.bytes / summary.requests))
  local e = summary.errors
  io.write(("errors %d %d %d %d %d\n"):format(e.connect, e.read, e.write, e.timeout, e.status))
end
