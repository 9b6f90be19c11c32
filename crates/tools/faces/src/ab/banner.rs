//! ab's banner.

/// Renders the text before a report.
pub(super) fn text() -> String {
    "This is ApacheBench, Version 2.3 <$Revision$>\n\
     Copyright 1996 Adam Twiss, Zeus Technology Ltd, http://www.zeustech.net/\n\
     Licensed to The Apache Software Foundation, http://www.apache.org/\n\n"
        .to_owned()
}

/// Renders the banner for `-w`.
pub(super) fn html() -> String {
    "<p>\n This is ApacheBench, Version 2.3 <i>&lt;$Revision$&gt;</i><br>\n \
     Copyright 1996 Adam Twiss, Zeus Technology Ltd, http://www.zeustech.net/<br>\n \
     Licensed to The Apache Software Foundation, http://www.apache.org/<br>\n</p>\n<p>\n"
        .to_owned()
}
