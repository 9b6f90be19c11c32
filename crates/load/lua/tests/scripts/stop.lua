-- Each thread stops after a hundred answers.
local count = 0

function response()
  count = count + 1
  if count == 100 then wrk.thread:stop() end
end
