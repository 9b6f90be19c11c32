-- The form that greets by name, answered by the interpreter inside the server: what
-- cgi-bin/form-handler does with a process for each request.

local function decoded(text)
    text = text:gsub("+", " ")
    return (text:gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end))
end

local entities = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }

local function escaped(text)
    text = text:gsub("[&<>\"]", entities)
    return (text:gsub("[%z\1-\8\10-\31\127]", ""))
end

-- application/x-www-form-urlencoded
local function fields(text)
    local found = {}
    for name, value in text:gmatch("([^&=]+)=([^&]*)") do
        found[decoded(name)] = escaped(decoded(value))
    end
    return found
end

local page = [[
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>A form</title></head><body>
<h1>%s</h1>
<form method="post" action="%s">
<p><label>Given name <input name="given" value="%s"></label></p>
<p><label>Family name <input name="family" value="%s"></label></p>
<p><input type="submit" name="Submit" value="Send"></p>
</form>
<p><a href="/">Back to the menu</a></p>
</body></html>
]]

function answer(request)
    local sent = fields(request.method == "POST" and request.body or request.query or "")
    local given, family = sent.given or "", sent.family or ""
    local title = "What is your name?"
    if given ~= "" or family ~= "" then
        title = "Hello " .. (given .. " " .. family):gsub("^ ", ""):gsub(" $", "")
    end
    local type = { ["Content-Type"] = "text/html; charset=utf-8" }
    return 200, type, page:format(title, escaped(request.path), given, family)
end
