//! The switches.

macro_rules! defects {
    ($($name:ident $id:literal $text:literal,)*) => {
        /// A rule that is not kept.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Defect { $(#[doc = $text] $name,)* }

        impl Defect {
            /// Every switch there is.
            pub const ALL: &[Defect] = &[$(Defect::$name,)*];

            /// Its stable name.
            pub fn id(self) -> &'static str {
                match self { $(Defect::$name => $id,)* }
            }

            /// What the server does wrong.
            pub fn text(self) -> &'static str {
                match self { $(Defect::$name => $text,)* }
            }
        }
    };
}

defects! {
    NeedsNoHost "no-host" "HTTP/1.1 without Host is served",
    TakesSameHostTwice "same-host-twice" "two equal Host fields are served",
    TakesTwoHosts "two-hosts" "two different Host fields are served",
    TakesAnyHost "any-host" "a Host that is no host is served",
    FailsWithoutHostIn10 "no-host-1.0" "HTTP/1.0 without Host is answered 500",
    TakesNoEmptyLine "empty-line" "an empty line before the request is refused",
    TakesBlankBeforeColon "blank-before-colon" "a blank between field name and colon is served",
    MistakesFolds "folds" "a folded line is answered 302",
    HangsOnLeadingBlank "leading-blank" "a blank before the first field hangs",
    TakesAnyLine "any-line" "field lines that are none are served",
    FailsOnControls "controls" "control characters in a value are answered 500",
    FailsOnBareCr "bare-cr" "a bare CR in a value is answered 500",
    FailsOnBareLf "bare-lf" "a bare LF in a value is answered 500",
    HangsOnLfLines "lf-lines" "a head with LF lines hangs",
    TakesAnyTarget "any-target" "forbidden characters in the target are served",
    FailsOnHighBytes "high-bytes" "bytes above 127 in the target are answered 500",
    KnowsNoAbsoluteForm "absolute-form" "the absolute form is answered 404",
    ListensToHost "host-wins" "with the absolute form, another Host is refused",
    TakesAnyForm "any-form" "GET with an authority or an asterisk is served",
    FailsOnAsterisk "asterisk" "OPTIONS * is answered 500",
    ConnectsAnywhere "connect" "CONNECT is answered 200 whatever its port",
    RefusesMinorVersions "minor-version" "HTTP/1.9 is answered 505",
    HangsOnMajorVersions "major-version" "HTTP/2.0 as text hangs",
    TakesAnyVersion "any-version" "versions that are none are served",
    HangsOnHttp09 "http-0.9" "a line without a version hangs",
    TakesAnyMethod "any-method" "every method is served as GET",
    HangsOnGarbage "garbage" "bytes that are no request line hang",
    BelievesLength "believes-length" "with both, Content-Length is believed and the connection stays",
    AnswersTwice "answers-twice" "with both lengths, two answers come",
    KeepsAfterFaultyFraming "faulty-framing" "after Transfer-Encoding in HTTP/1.0 the connection stays",
    TakesAnyCoding "any-coding" "unknown codings are served as if they were none",
    TakesChunkedAnywhere "chunked-anywhere" "chunked that is not last, or is there twice, is served",
    ReadsNumbersFreely "free-numbers" "+1, 0x1, 1_0 and the like are served as lengths",
    TakesLastLength "last-length" "of two Content-Lengths the last is believed",
    RefusesEqualLengths "equal-lengths" "two equal Content-Lengths are answered 500",
    Overflows "overflow" "lengths are kept in 64 bits and wrap",
    ReadsSizesFreely "free-sizes" "chunk sizes are read as far as they can be",
    RefusesExtensions "extensions" "chunk extensions are refused",
    MergesTrailers "trailers" "a trailer is merged into the header, where a second Host is answered 500",
    RefusesTrailers "no-trailers" "every trailer is answered 500",
    ServesHalfBodies "half-bodies" "a body that ends early takes effect",
    ForgetsHalfClosed "half-closed" "a client that ends inside a message is forgotten, not closed",
    LeavesBodies "leaves-bodies" "the body of a GET is left to be read as a request",
    AnswersBackwards "backwards" "pipelined answers come in the wrong order",
    HangsAfterGarbage "garbage-behind" "garbage behind a good request hangs",
    IgnoresClose "ignores-close" "after Connection: close further requests are served",
    SendsBodyToHead "head-body" "the answer to HEAD has a body",
    WaitsForBody "no-continue" "with Expect no 100 is sent: it waits for the body",
    Continues10 "continue-1.0" "100 is sent to HTTP/1.0",
    Upgrades "upgrades" "any upgrade is answered 101",
    NamesNoMethods "no-allow" "405 has no Allow",
    HasNoDate "no-date" "answers have no Date",
    OverflowsRanges "range-overflow" "ranges that overflow are answered 500",
    MultipliesRanges "range-multiply" "every range of a request is sent, however often",
    BelievesBadDates "bad-dates" "a date that is none counts as now",
    RefusesWithoutAWord "silent-refusal" "what is refused is closed without a byte",
    StaysAfterRefusing "stays" "after 400 the connection stays",
    FailsInsteadOfRefusing "fails" "what is to be refused is answered 500",
    HangsInsteadOfRefusing "hangs" "what is to be refused hangs",
    FailsOnEncodedNul "fails-on-nul" "%00 in the target is answered 500",
    HangsOnEncodedNul "hangs-on-nul" "%00 in the target hangs",
    DiesOnEncodedNul "dies-on-nul" "%00 in the target ends the server",
    FailsOnBodyNul "body-nul" "NUL in a body is answered 500",
}
