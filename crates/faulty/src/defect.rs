//! The switches.

/// What kind of case shows a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefectKind {
    /// Malformed syntax and random data: S and F.
    Syntax,
    /// L.
    Limit,
    /// One connection that waits: W-01 to W-09.
    Deadline,
    /// One connection that is odd: C.
    Connection,
    /// Many connections at once: W-10 and on, C.
    Pressure,
    /// More requests than are served: R.
    Overload,
    /// Frames of HTTP/2: H.
    Frames,
    /// Frames and streams of HTTP/3: Q.
    Streams,
    /// Tables of QPACK: Q-31 to Q-35.
    Tables,
    /// Packets of QUIC among those of a connection, and its handshake: Q-54 to Q-58, Q-71 to Q-89.
    Packets,
    /// What shows itself only to who builds on what he found: F-15.
    Mutation,
    /// What only segments of the client's own making show: P.
    Segments,
}

macro_rules! defects {
    ($($kind:ident { $($name:ident $id:literal $text:literal,)* })*) => {
        /// A rule that is not kept.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Defect { $($(#[doc = $text] $name,)*)* }

        impl Defect {
            /// Every switch there is.
            pub const ALL: &[Defect] = &[$($(Defect::$name,)*)*];

            /// Its stable name.
            pub fn id(self) -> &'static str {
                match self { $($(Defect::$name => $id,)*)* }
            }

            /// What the server does wrong.
            pub fn text(self) -> &'static str {
                match self { $($(Defect::$name => $text,)*)* }
            }

            /// What shows it.
            pub fn kind(self) -> DefectKind {
                match self { $($(Defect::$name => DefectKind::$kind,)*)* }
            }

            /// The switch of this name.
            pub fn by_id(id: &str) -> Option<Defect> {
                Defect::ALL.iter().copied().find(|defect| defect.id() == id)
            }
        }
    };
}

impl Defect {
    /// Requests are work, and there is one worker.
    pub(super) fn limits_rate(self) -> bool {
        self.kind() == DefectKind::Overload
    }
}

defects! {
    Syntax {
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
        LeavesTraces "leaves-traces" "behind a request that was refused, the next refusal to anybody has no head",
        TakesAnyMethod "any-method" "every method is served as GET",
        HangsOnGarbage "garbage" "bytes that are no request line hang",
        BelievesLength "believes-length" "with both, Content-Length is believed and the connection stays",
        AnswersTwice "answers-twice" "with both lengths, two responses come",
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
        AnswersBackwards "backwards" "pipelined responses come in the wrong order",
        HangsAfterGarbage "garbage-behind" "garbage behind a good request hangs",
        IgnoresClose "ignores-close" "after Connection: close further requests are served",
        SendsBodyToHead "head-body" "the response to HEAD has a body",
        WaitsForBody "no-continue" "with Expect no 100 is sent: it waits for the body",
        Continues10 "continue-1.0" "100 is sent to HTTP/1.0",
        Upgrades "upgrades" "any upgrade is answered 101",
        NamesNoMethods "no-allow" "405 has no Allow",
        HasNoDate "no-date" "responses have no Date",
        NamesNoType "no-type" "content has no Content-Type",
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
        AbortsOnEncodedNul "aborts-on-nul" "%00 in the target ends the server's process by signal 6",
        DiesOnPercentN "dies-on-percent-n" "%n in the target ends the server; it is back after 500 ms",
        FailsOnBodyNul "body-nul" "NUL in a body is answered 500",
        FailsNowAndThen "now-and-then" "every fifth %00 in a target is answered 500",
        RefusesCookies "cookies" "a request with a cookie is answered 400",
        FailsOnOddCookies "odd-cookies" "a cookie that is no pair of a name and a value is answered 500",
        FailsOnCookieQuotes "cookie-quotes" "a cookie with a quote, a comma, a backslash or a byte above 127 is answered 500",
        FailsOnTwoCookies "two-cookies" "two Cookie fields, or two cookies of one name, are answered 500",
        FailsOnLongCookies "long-cookies" "cookies of more than 2 KiB together are answered 500",
        IgnoresConditions "no-304" "conditions are ignored: nothing is ever answered 304",
        ForgetsTag "bare-304" "304 has no ETag",
        AsksDateFirst "date-first" "where If-None-Match stands beside it, If-Modified-Since is asked first",
        FailsOnOddConditions "odd-conditions" "tags without quotes and dates of the future or of an old form are answered 500",
        AbortsOnLateByte "late-byte" "a pipelined request of which all but the last byte has come ends the server by signal 6; it is back after 500 ms",
        CrashesOnThirdNul "crashes" "each third %00 in a target crashes the server; it is back after 500 ms",
    }
    Limit {
        LineOfAnyLength "no-line-limit" "a request line may be of any length",
        FieldOfAnyLength "no-field-limit" "a field line, and all of them together, may be of any length",
        AnyFields "no-count-limit" "there may be any number of field lines",
        HeadOfAnyLength "no-head-limit" "field lines have no limit of any kind",
        BodyOfAnyLength "no-body-limit" "a body may be of any length",
        ReadsTooLongBodies "late-413" "a body beyond the limit is read whole before it is refused",
        AnyExtensions "no-extension-limit" "chunk extensions may be of any length together",
        AnyTrailers "no-trailer-limit" "trailers may be of any length together",
        FailsAtLimits "limits-fail" "what is beyond a limit is answered 500",
        HangsAtLimits "limits-hang" "what is beyond a limit hangs",
        SaysBadRequestAtLimits "limits-400" "what is beyond a limit is answered 400, whatever it is",
        LosesErrors "lost-error" "what is beyond a limit is reset, and the refusal with it",
        SlowFields "slow-fields" "work grows with the square of the number of field lines",
        SlowPairs "slow-pairs" "work grows with the square of the pairs and segments of a target and its cookies",
        SlowExpression "slow-expression" "an expression walks over a field's value again from each of its bytes: work grows with the square of the longest run of one letter",
        FailsOnManyPairs "many-pairs" "more than 500 pairs or segments are answered 500",
        SlowChunks "slow-chunks" "work grows with the square of the number of chunks",
        HangsOnExtensions "hangs-on-extensions" "a chunk extension of 1 KiB takes one of eight workers for ever",
        DiesOfLongField "dies-of-long-field" "a field line of 9,000 bytes ends the server by signal 6; it is back after 500 ms",
        DiesOfPipelined "dies-of-pipelined" "the ninth of requests that come together ends the server by signal 6; it is back after 500 ms",
        ForgetsPipelined "forgets-pipelined" "of requests that come together the ninth is not answered",
    }
    Deadline {
        WaitsForSilent "no-silent-deadline" "a connection may be silent for ever",
        WaitsForHeads "no-head-deadline" "a head may take for ever",
        HeadPerRead "head-per-read" "the deadline of a head begins anew with each of its bytes",
        WaitsForBodies "no-body-deadline" "a body may take for ever",
        BodyPerRead "body-per-read" "the deadline of a body begins anew with each of its bytes",
        WaitsForIdle "no-idle-deadline" "a connection may be idle for ever",
        WaitsForReaders "no-send-deadline" "a client may take nothing of a response for ever",
    }
    Connection {
        SlowReads "slow-reads" "work grows with the square of the pieces in which a message comes",
        RefusesSplitHeads "split-heads" "a head that comes in more than one piece is refused",
        RepeatsAnswers "repeats" "the fifth response on a connection is that of the request before it",
        MixesPipelined "mixes-pipelined" "of requests that come together the second gets the last response of another client",
        MixesAborted "mixes-aborted" "the last response to a client that resets goes to the next client too",
        MixesRefused "mixes-refused" "behind a refusal the next client gets the last response of another",
        MixesCrowd "mixes-crowd" "where more than 20 connections stand, a client gets the last response of another",
        DropsHalfClosed "drops-half-closed" "a client that ends its side gets no response any more",
    }
    Pressure {
        TooStrict "too-strict" "a message, or the taking of a response, may last one second in all",
        FewSlots "few-slots" "eight connections are served at once, idle or not; others wait",
        FewWorkers "few-workers" "eight requests are worked on at once, also while they are incomplete",
        Sheds "sheds" "beyond eight connections 503 is answered",
        RecoversSlowly "slow-recovery" "when all of eight workers were taken, nothing is answered for 10 s",
        LosesSlotsToResets "leak-per-reset" "each connection that a client resets takes one of 64 slots for ever",
        LosesSlotsToCloses "leak-per-close" "each connection closed before a response takes one of 64 slots for ever",
        ShortBacklog "short-backlog" "five connections wait to be accepted, one each 10 ms",
        LosesSomeSlots "leak-some" "each fourth connection that a client resets takes one of 108 slots for ever; connections that are idle take one each too",
        KeepsMemory "memory" "each request takes 64 KiB for ever",
        KeepsBodies "keeps-bodies" "each body that a client breaks off keeps 512 KiB for ever",
        KeepsDescriptors "descriptors" "each connection that a client resets leaves a descriptor open for ever",
    }
    Overload {
        LimitedRate "capacity" "no defect: 100 requests a second are served, the others wait",
        Collapses "collapse" "of 100 requests a second the fewer are served, the more wait",
        Lingers "hangover" "of 100 requests a second none is served for 18 s once 30 waited",
        DiesOfLoad "dies-of-load" "of 100 requests a second 30 wait, and the next one kills the server",
        StarvesCheap "starves-cheap" "of 100 requests a second those to /costly count tenfold, and the others wait behind them",
        Drifts "drift" "each request, of 100 a second, makes the work of all others a thousandth longer",
        DiesOfMany "dies-of-many" "50 connections stand, and the next one kills the server",
        LosesInFlight "loses-in-flight" "when it is restarted, requests in flight are reset",
        StaysAway "stays-away" "when it is restarted, it does not come back",
        DiesStarved "dies-starved" "when something is taken from it, the next request kills it",
        SilentStarved "silent-starved" "when something is taken from it, requests hang",
        StaysStarved "stays-starved" "what is given back to it does not help",
        ShedsLoad "sheds-load" "of 100 requests a second 10 wait, and beyond them 503 is answered",
    }
    Frames {
        DiesOfLongFrame "dies-of-long-frame" "a frame of HTTP/2 that says more than 40,000 bytes ends the server; it is back after 500 ms",
        KeepsResetStreams "keeps-reset-streams" "a stream of HTTP/2 that a client resets counts for ever among the hundred of its connection",
        MixesTables "mixes-tables" "the fields that HPACK keeps are lost between two header blocks",
        ServesConnect "serves-connect" "CONNECT is served over HTTP/2 like any other method",
    }
    Streams {
        DiesOfDataFirst "dies-of-data-first" "DATA before HEADERS on a stream of HTTP/3 ends the server; it is back after 500 ms",
        KeepsCancelledStreams "keeps-cancelled-streams" "a stream of HTTP/3 that a client gives up counts for ever among the hundred of its connection",
        HangsOnInsertCount "hangs-on-insert-count" "a field section of HTTP/3 that waits for entries of a table takes one of eight workers for ever",
    }
    Tables {
        GrowsTables "grows-tables" "the table of QPACK may be of any capacity, whatever the SETTINGS say",
        PassesOverInstructions "passes-over-instructions" "an instruction for the table of QPACK that cannot be is passed over",
        OverfillsTables "overfills-tables" "its own table of QPACK has one byte more than its client permits",
        RefersBeyondTables "refers-beyond-tables" "its responses refer to an entry of QPACK's table that is not there",
        BlocksReaders "blocks-readers" "its responses refer to QPACK's table on more streams than may wait for it",
        EvictsReferenced "evicts-referenced" "an entry leaves its own table of QPACK while responses refer to it that nobody has acknowledged",
    }
    Packets {
        PassesOverForbidden "passes-over-forbidden" "HANDSHAKE_DONE and NEW_TOKEN of a client are passed over",
        TakesAnyAck "takes-any-ack" "an acknowledgement of a packet that was never sent is passed over",
        KeepsNoWindow "keeps-no-window" "bytes behind the first 1,000,000 of a stream are passed over, whatever its window is",
        AnswersNoChallenge "answers-no-challenge" "PATH_CHALLENGE has no answer",
        ServesEarly "serves-early" "requests in early data of HTTP/3 are served before the handshake is over, whatever they ask for",
        TakesAnyHandshakeFrame "takes-any-handshake-frame" "frames that Handshake packets cannot hold are passed over",
        FollowsNoKeyUpdate "follows-no-key-update" "packets with new keys of QUIC are dropped",
        PassesOverAlerts "passes-over-alerts" "an error of TLS in the handshake of QUIC is passed over",
        TakesAnyParameter "takes-any-parameter" "transport parameters that cannot be are passed over",
        ClosesOnStaleTickets "closes-on-stale-tickets" "a connection whose early data cannot be read is closed",
    }
    Segments {
        StandsStillUnread "stands-still-unread" "a client that takes nothing of a response keeps everybody waiting, for 10 s at most",
    }
    Mutation {
        DiesOfTrailedExtension "dies-of-trailed-extension" "a last chunk with an extension is answered 202, with a trailer behind it 203, and with two it ends the server; it is back after 500 ms",
    }
}
