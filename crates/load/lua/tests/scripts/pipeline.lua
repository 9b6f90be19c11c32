-- Three requests in one text.
init = function(args)
  local parts = {
    wrk.format(nil, "/hw?first"),
    wrk.format(nil, "/hw?second"),
    wrk.format(nil, "/hw?third"),
  }
  together = table.concat(parts)
end

request = function() return together end
