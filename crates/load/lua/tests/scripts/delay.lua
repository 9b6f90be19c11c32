-- A pause before each request.
function delay()
  return math.random(20, 30)
end
