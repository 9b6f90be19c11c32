use super::*;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::SocketAddr;

const TESTER: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/// 2026-12-01T01:00:00Z.
const OPENS: i64 = 1_796_086_800;

fn sample() -> Proof {
    Proof {
        tester: TESTER.into(),
        host: "www.example.org:443".into(),
        groups: vec![CaseGroup::Fuzz, CaseGroup::Syntax, CaseGroup::Limits, CaseGroup::Slow],
        connections_max: 200,
        opens_max: 20,
        bytes_max: 1 << 20,
        window: moment::window("2026-12-01T01:00Z/2026-12-01T05:00Z").unwrap(),
        not_after: Day::parse("2026-12-31").unwrap(),
        contact: "ops@example.org".into(),
        behind: Behind::None,
    }
}

fn claim() -> Claim {
    Claim {
        tester: TESTER.into(),
        host: "www.example.org:443".into(),
        addresses: ["203.0.113.1:443", "[2001:db8::1]:443"]
            .map(|text| text.parse().unwrap())
            .into(),
    }
}

#[test]
fn the_published_text_is_stable() {
    insta::assert_snapshot!(sample().to_file(), @"
    loadstone-torture/1
    tester: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
    host: www.example.org:443
    groups: fuzz syntax limits slow
    max-connections: 200
    max-new-connections-per-second: 20
    max-bytes-per-second: 1MiB
    window: 2026-12-01T01:00Z/2026-12-01T05:00Z
    not-after: 2026-12-31
    contact: ops@example.org
    behind: none
    ");
    assert_eq!(Proof::parse(sample().to_file().as_bytes()), Ok(sample()));
    assert_eq!(Proof::parse(sample().to_file().trim_end().as_bytes()), Ok(sample()));
    assert_eq!(Proof::parse_txt(sample().to_txt().as_bytes()), Ok(sample()));
}

#[test]
fn errors_are_reported_with_their_line() {
    let whole = sample().to_file();
    let changed = |from: &str, to: &str| {
        assert!(whole.contains(from), "{from}");
        Proof::parse(whole.replacen(from, to, 1).as_bytes()).unwrap_err().to_string()
    };
    for (from, to, outcome) in [
        ("torture/1", "torture/2", "line 1: it is not loadstone-torture/1"),
        ("tester: 0", "tester: ", "line 2: write a fingerprint of 64"),
        ("tester: 0123456789a", "tester: 0123456789A", "line 2: write a fingerprint of 64"),
        ("tester:", "Tester:", "line 2: it does not begin with \"tester: \""),
        ("host: www", "host:  www", "line 3: \" www.example.org:443\" is not of the form"),
        (":443", ":0443", "line 3:"),
        (":443", ":0", "line 3:"),
        ("www.example", "WWW.example", "line 3:"),
        ("fuzz syntax", "fuzz fuzz", "line 4: fuzz appears twice"),
        ("fuzz syntax", "fuzz  syntax", "line 4: \"\" is not a group"),
        ("fuzz", "all", "line 4: \"all\" is not a group"),
        (": 200", ": 0200", "line 5: \"0200\" is not a whole number"),
        (": 200", ": 0", "line 5: \"0\" is not a whole number"),
        (": 200", ": 99999999999999999999", "line 5:"),
        ("1MiB", "1MB", "line 7: \"1MB\" is not a whole number"),
        ("T01:00Z", "T24:00Z", "line 8: \"2026-12-01T24:00Z\" is not a time"),
        ("T01:00Z", "T06:00Z", "line 8: it ends before it begins"),
        ("2026-12-31", "2026-12-32", "line 9: \"2026-12-32\" is not a date"),
        ("2026-12-31", "2026-02-30", "line 9:"),
        ("ops@example.org", "", "line 10: write a text of 1 to 120 bytes"),
        ("ops@example.org", "a; b", "line 10: write a text of 1 to 120 bytes"),
        ("none\n", "someone, yes\n", "line 11: write none, a provider"),
        ("none\n", "none\n\n", "line 12: nothing may follow"),
        ("groups", "note: x\ngroups", "line 4: it does not begin with \"groups: \""),
        ("\n", "\r\n", "printable ASCII"),
        ("ops@example.org", &"x".repeat(1_000), "longer than 1024 bytes"),
    ] {
        let found = changed(from, to);
        assert!(found.contains(outcome), "{from:?} -> {to:?}: {found}");
    }
}

#[test]
fn a_proof_permits_one_tester_one_host_and_a_time() {
    let now = |proof: &Proof, at: i64| proof.check(&claim(), at);
    let proof = sample();
    assert_eq!(now(&proof, OPENS), Ok(()));
    assert_eq!(now(&proof, OPENS + 4 * 3600 - 1), Ok(()));
    let refusal = |proof: &Proof, at: i64| now(proof, at).unwrap_err();
    assert_eq!(refusal(&proof, OPENS - 1), "its time window opens at 2026-12-01T01:00Z");
    assert_eq!(refusal(&proof, OPENS + 4 * 3600), "its time window closed at 2026-12-01T05:00Z");
    let open = Proof { window: None, ..sample() };
    let last = OPENS + 30 * 86_400;
    assert_eq!(now(&open, last + 22 * 3600), Ok(()), "all of the last day");
    assert_eq!(refusal(&open, last + 23 * 3600), "its last day was 2026-12-31");
    assert!(refusal(&open, OPENS - 2 * 86_400).contains("more than 31 days ahead"));
    let other = Proof { tester: TESTER.replace('0', "9"), ..sample() };
    assert!(refusal(&other, OPENS).contains("it names another tester"));
    let other = Proof { host: "example.org:443".into(), ..sample() };
    assert_eq!(refusal(&other, OPENS), "it is for example.org:443, not for www.example.org:443");
}

/// A simulated internet.
#[derive(Default)]
struct Net {
    now: i64,
    files: BTreeMap<SocketAddr, Vec<u8>>,
    txt: Vec<Vec<u8>>,
    asked: Cell<u32>,
}

impl Sources for Net {
    fn unix_seconds(&mut self) -> i64 {
        self.now
    }

    fn file(&mut self, address: SocketAddr) -> Result<Vec<u8>, String> {
        self.asked.set(self.asked.get() + 1);
        self.files.get(&address).cloned().ok_or_else(|| "404".to_owned())
    }

    fn txt(&mut self, name: &str) -> Result<Vec<Vec<u8>>, String> {
        assert_eq!(name, "_loadstone-torture.www.example.org");
        Ok(self.txt.clone())
    }
}

#[test]
fn the_proof_file_must_be_on_every_address() {
    let text = sample().to_file().into_bytes();
    let mut net = Net { now: OPENS, ..Net::default() };
    net.files.insert(claim().addresses[0], text.clone());
    let error = find(&claim(), &mut net).unwrap_err();
    assert!(error.contains("the file at [2001:db8::1]:443: 404; TXT at _loadstone"), "{error}");
    net.files.insert(claim().addresses[1], text.trim_ascii_end().to_vec());
    let error = find(&claim(), &mut net).unwrap_err();
    assert!(error.contains("it differs from the one at another address"), "{error}");
    net.files.insert(claim().addresses[1], text);
    let found = find(&claim(), &mut net).unwrap();
    assert_eq!((found.place, &found.proof), (ProofPlace::File, &sample()));
    assert_eq!(verify_published(&claim(), &found, &mut net), Ok(()));
    net.files.remove(&claim().addresses[1]);
    assert!(verify_published(&claim(), &found, &mut net).unwrap_err().contains("404"));
}

#[test]
fn one_txt_record_that_names_us_is_enough() {
    let mut net = Net { now: OPENS, ..Net::default() };
    net.txt = vec![b"v=spf1 -all".to_vec(), sample().to_txt().into_bytes()];
    let found = find(&claim(), &mut net).unwrap();
    assert_eq!(found.place, ProofPlace::Txt);
    let changed = Proof { connections_max: 100, ..sample() };
    net.txt = vec![changed.to_txt().into_bytes()];
    assert_eq!(verify_published(&claim(), &found, &mut net), Err("the proof was changed".into()));
    net.txt = vec![];
    assert!(verify_published(&claim(), &found, &mut net).unwrap_err().contains("there is none"));
    net.txt = vec![sample().to_txt().into_bytes()];
    net.now += 4 * 3600;
    assert!(verify_published(&claim(), &found, &mut net).unwrap_err().contains("window closed"));
    let address = Claim { host: "203.0.113.1:443".into(), ..claim() };
    assert!(find(&address, &mut net).unwrap_err().contains("an address has no TXT record"));
}

fn words_of(max: usize) -> impl Strategy<Value = String> {
    proptest::string::string_regex(&format!("[!-:<-~]([ -:<-~]{{0,{max}}}[!-:<-~])?")).unwrap()
}

prop_compose! {
    fn any_proof()(
        tester in "[0-9a-f]{64}",
        host in "[a-z0-9][a-z0-9.-]{0,40}:[1-9][0-9]{0,3}",
        groups in proptest::sample::subsequence(CaseGroup::ALL.to_vec(), 1..=9),
        numbers in (1_u64..=NUMBER_MAX, 1_u64..=NUMBER_MAX, 1_u64..=NUMBER_MAX),
        from in 946_684_800_i64..4_000_000_000,
        span in 1_i64..10_000,
        windowed in any::<bool>(),
        contact in words_of(60),
        behind in prop_oneof![
            Just(Behind::None),
            ("[A-Z][a-z]{1,20}", proptest::option::of(words_of(40)))
                .prop_map(|(name, permission)| Behind::Provider { name, permission }),
        ],
    ) -> Proof {
        let minute = |at: i64| {
            let day = Day::from_unix_seconds(at, 0).unwrap();
            let text = format!("{day}T{:02}:{:02}Z", at.rem_euclid(86_400) / 3600, at / 60 % 60);
            text
        };
        let window = format!("{}/{}", minute(from), minute(from + span * 60));
        Proof {
            tester, host, groups, contact, behind,
            connections_max: numbers.0, opens_max: numbers.1, bytes_max: numbers.2,
            window: if windowed { moment::window(&window).unwrap() } else { None },
            not_after: Day::from_unix_seconds(from, span).unwrap(),
        }
    }
}

proptest! {
    #[test]
    fn a_written_proof_is_parsed_back(proof in any_proof()) {
        let file = proof.to_file();
        prop_assume!(file.len() <= PROOF_MAX);
        prop_assert_eq!(Proof::parse(file.as_bytes()), Ok(proof.clone()));
        prop_assert_eq!(Proof::parse_txt(proof.to_txt().as_bytes()), Ok(proof));
    }

    #[test]
    fn every_parsed_proof_can_be_written(
        at in 0_usize..400, byte in any::<u8>(), cut in 0_usize..400, proof in any_proof()
    ) {
        let mut bytes = proof.to_file().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        if cut % 3 == 0 {
            bytes.truncate(cut);
        }
        if let Ok(read) = Proof::parse(&bytes) {
            prop_assert_eq!(Proof::parse(read.to_file().as_bytes()), Ok(read));
        }
    }

    #[test]
    fn arbitrary_input_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..1_200)) {
        Proof::parse(&bytes).ok();
        Proof::parse_txt(&bytes).ok();
    }
}
