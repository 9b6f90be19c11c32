//! The dynamic variables of Postman, Bruno, Insomnia and REST clients, which begin with a dollar sign.

use crate::text::{DraftPart, Maker, Text};

/// Returns the value of a dynamic variable; `None` if it is unknown.
pub(crate) fn dynamic(name: &str) -> Option<Text> {
    let made = |maker: Maker| Some(Text(vec![DraftPart::Made(maker)]));
    let one_of =
        |list: &[&str]| made(Maker::OneOf(list.iter().map(|it| (*it).to_owned()).collect()));
    match name {
        "$guid" | "$randomUUID" | "$uuid" | "$random.uuid" => made(Maker::Uuid),
        "$timestamp" | "$randomDateRecent" => made(Maker::Seconds),
        "$isoTimestamp" | "$datetime" => Some(Text::plain("2027-01-15T08:00:00.000Z")),
        "$randomInt" => made(Maker::Range(0, 1000)),
        "$random.integer" => made(Maker::Range(0, 999)),
        "$randomBoolean" => one_of(&["true", "false"]),
        "$randomAlphaNumeric" => made(Maker::Hex(1)),
        "$randomHexadecimal" | "$randomHexColor" => made(Maker::Hex(6)),
        "$randomPassword" => made(Maker::Letters(15)),
        "$randomFirstName" => {
            one_of(&["Ada", "Ben", "Carla", "David", "Ella", "Finn", "Grace", "Henry"])
        }
        "$randomLastName" => {
            one_of(&["Adams", "Brown", "Clark", "Davis", "Evans", "Ford", "Green", "Hill"])
        }
        "$randomFullName" => {
            one_of(&["Ada Adams", "Ben Brown", "Carla Clark", "David Davis", "Ella Evans"])
        }
        "$randomCity" => one_of(&["Aachen", "Bergen", "Cardiff", "Dublin", "Essen", "Florence"]),
        "$randomCountry" => one_of(&["Austria", "Belgium", "Chile", "Denmark", "Egypt", "France"]),
        "$randomCountryCode" => one_of(&["AT", "BE", "CL", "DK", "EG", "FR"]),
        "$randomCompanyName" => one_of(&["Acme", "Bolt and Sons", "Cedar Ltd", "Delta Works"]),
        "$randomColor" => one_of(&["red", "green", "blue", "black", "white", "orange"]),
        "$randomProduct" | "$randomProductName" => {
            one_of(&["chair", "table", "lamp", "shelf", "clock"])
        }
        "$randomPrice" => made(Maker::Range(1, 1000)),
        "$randomPhoneNumber" => {
            Some(Text(vec![DraftPart::Plain("555-".into()), DraftPart::Made(Maker::Digits(7))]))
        }
        "$randomUserName" | "$randomWord" | "$randomNoun" | "$randomLoremWord" => {
            made(Maker::Letters(8))
        }
        "$randomEmail" | "$randomExampleEmail" | "$random.email" => Some(Text(vec![
            DraftPart::Made(Maker::Letters(10)),
            DraftPart::Plain("@example.com".into()),
        ])),
        "$randomLoremSentence" | "$randomLoremText" | "$randomLoremParagraph" | "$randomPhrase" => {
            one_of(&["the quick brown fox jumps over the lazy dog", "a sentence of some length"])
        }
        "$randomUrl" => Some(Text::plain("http://example.com/")),
        "$randomDomainName" => one_of(&["example.com", "example.net", "example.org"]),
        "$randomIP" => Some(Text(vec![
            DraftPart::Plain("198.51.100.".into()),
            DraftPart::Made(Maker::Range(1, 254)),
        ])),
        "$randomUserAgent" => Some(Text::plain("Mozilla/5.0 (X11; Linux x86_64) load-test")),
        "$randomDateFuture" | "$randomDatePast" => Some(Text::plain("2027-01-15")),
        _ => with_arguments(name),
    }
}

/// Parses `$randomInt 1 9` of REST clients, and `$random.integer(1, 9)` of JetBrains' client.
fn with_arguments(name: &str) -> Option<Text> {
    let (function, arguments) = name.split_once([' ', '(']).unwrap_or((name, ""));
    let arguments = arguments.trim_end_matches(')');
    let numbers: Vec<i64> =
        arguments.split([' ', ',']).filter_map(|word| word.trim().parse().ok()).collect();
    let made = |maker: Maker| Some(Text(vec![DraftPart::Made(maker)]));
    let length =
        |most: i64| usize::try_from(most).ok().filter(|length| (1..=10_000).contains(length));
    match (function, &numbers[..]) {
        ("$randomInt" | "$random.integer", [from, to, ..]) => {
            made(Maker::Range(*from.min(to), (*from.max(to)).saturating_sub(1).max(*from.min(to))))
        }
        ("$random.alphabetic" | "$random.alphanumeric", [n]) => made(Maker::Letters(length(*n)?)),
        ("$random.hexadecimal", [n]) => made(Maker::Hex(length(*n)?)),
        ("$random.numeric", [n]) => made(Maker::Digits(length(*n)?)),
        ("$timestamp", _) => made(Maker::Seconds),
        ("$datetime" | "$localDatetime" | "$isoTimestamp", _) => {
            Some(Text::plain("2027-01-15T08:00:00.000Z"))
        }
        _ => None,
    }
}
