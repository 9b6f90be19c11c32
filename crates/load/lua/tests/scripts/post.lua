-- A POST with a form as its body.
wrk.method = "POST"
wrk.body = "name=loadstone&kind=magnet"
wrk.headers["Content-Type"] = "application/x-www-form-urlencoded"
