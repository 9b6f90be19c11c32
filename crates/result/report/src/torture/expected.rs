//! Conforming outcomes in words: what a server should do instead.

/// Words of classes without an argument, as the end of "the server should".
const WORDS: [(&str, &str); 18] = [
    ("reject", "refuse it with 4xx, 501 or 505, or close the connection"),
    ("answered", "answer"),
    ("one-answer", "answer once"),
    ("no-answer", "give no answer"),
    ("close", "close the connection"),
    ("ended", "answer or close the connection"),
    ("silent", "wait"),
    ("interim", "send an interim response"),
    ("no-interim", "send no interim response"),
    ("nothing-more", "send nothing more"),
    ("no-body", "send no content"),
    ("plain", "answer as to a plain GET"),
    ("all-plain", "answer each request as a plain GET"),
    ("last-plain", "answer the last request as a plain GET"),
    ("pong", "acknowledge a PING afterwards"),
    ("stands", "keep the connection"),
    ("connection", "end the connection with an error"),
    ("stream", "reset the stream"),
];

/// Returns the classes of an expectation in words; a text that is no list of classes stays as it is.
pub(super) fn in_words(expected: &str) -> String {
    let classes: Vec<&str> = expected.split(" or ").collect();
    let all: Option<Vec<String>> = classes.iter().map(|class| class_in_words(class)).collect();
    all.map_or_else(|| expected.to_owned(), |all| all.join(", or "))
}

fn class_in_words(class: &str) -> Option<String> {
    let words: Option<Vec<String>> = class.split_whitespace().map(word).collect();
    words.map(|words| words.join(" and ")).filter(|text| !text.is_empty())
}

fn word(word: &str) -> Option<String> {
    if let Some((_, text)) = WORDS.iter().find(|(known, _)| *known == word) {
        return Some((*text).to_owned());
    }
    let is_status = |text: &str| {
        text.len() == 3
            && text.as_bytes()[0].is_ascii_digit()
            && text[1..].bytes().all(|byte| byte.is_ascii_digit() || byte == b'x')
    };
    if word.is_ascii() && is_status(word) {
        return Some(format!("answer {word}"));
    }
    let (name, argument) = word.split_once(':')?;
    let codes = argument.replace(',', " or ");
    Some(match name {
        "connection" => format!("end the connection with {codes}"),
        "stream" => format!("reset the stream with {codes}"),
        "statuses" => format!("answer {}", argument.replace(',', ", then ")),
        "all" => format!("answer {argument} to all"),
        "not" => format!("not answer {argument}"),
        "has" => format!("send the field {argument}"),
        "lacks" => format!("not send the field {argument}"),
        "lacks-text" => format!("not send the text {argument}"),
        "not-to" => format!("not redirect to {argument}"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_sentences() {
        for (classes, text) in [
            ("400 close", "answer 400 and close the connection"),
            ("400 or one-answer close", "answer 400, or answer once and close the connection"),
            (
                "connection:FRAME_SIZE_ERROR or stream:A,B",
                "end the connection with FRAME_SIZE_ERROR, or reset the stream with A or B",
            ),
            ("4xx or has:date", "answer 4xx, or send the field date"),
            ("a close within 60 s", "a close within 60 s"),
            ("", ""),
        ] {
            assert_eq!(in_words(classes), text);
        }
    }
}
