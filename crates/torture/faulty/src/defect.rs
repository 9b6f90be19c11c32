//! The switches.

/// The kind of case that shows a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefectKind {
    /// Malformed syntax and random data: S and F.
    Syntax,
    /// L.
    Limit,
    /// A waiting connection: W-01 to W-09.
    Deadline,
    /// An odd connection: C.
    Connection,
    /// Many connections at once: W-10 and on, C.
    Pressure,
    /// More requests than the capacity: R.
    Overload,
    /// HTTP/2 frames: H.
    Frames,
    /// HTTP/3 frames and streams: Q.
    Streams,
    /// QPACK tables: Q-31 to Q-35.
    Tables,
    /// QUIC packets within a connection, and its handshake: Q-54 to Q-58, Q-71 to Q-89.
    Packets,
    /// WebSocket: U.
    Sockets,
    /// WebSocket over HTTP/2: U-30 to U-37.
    Tunnels,
    /// gRPC: G.
    Calls,
    /// Visible only to feedback-driven mutation: F-15.
    Mutation,
    /// Visible only with raw TCP segments: P.
    Segments,
}

macro_rules! defects {
    ($($kind:ident { $($name:ident $id:literal $text:literal,)* })*) => {
        /// A violated rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Defect { $($(#[doc = $text] $name,)*)* }

        impl Defect {
            /// All switches.
            pub const ALL: &[Defect] = &[$($(Defect::$name,)*)*];

            /// Returns its stable name.
            pub fn id(self) -> &'static str {
                match self { $($(Defect::$name => $id,)*)* }
            }

            /// Describes the server's mistake.
            pub fn text(self) -> &'static str {
                match self { $($(Defect::$name => $text,)*)* }
            }

            /// Returns the kind of case that shows it.
            pub fn kind(self) -> DefectKind {
                match self { $($(Defect::$name => DefectKind::$kind,)*)* }
            }

            /// Returns the switch with this name.
            pub fn by_id(id: &str) -> Option<Defect> {
                Defect::ALL.iter().copied().find(|defect| defect.id() == id)
            }
        }
    };
}

impl Defect {
    /// Returns whether requests are work for a single worker.
    pub(super) fn limits_rate(self) -> bool {
        self.kind() == DefectKind::Overload
    }
}

defects! {
    Syntax {
        NeedsNoHost "no-host" "HTTP/1.1 without Host is served",
        TakesSameHostTwice "same-host-twice" "two equal Host fields are served",
        TakesTwoHosts "two-hosts" "two different Host fields are served",
        TakesAnyHost "any-host" "an invalid Host is served",
        FailsWithoutHostIn10 "no-host-1.0" "HTTP/1.0 without Host gets 500",
        TakesNoEmptyLine "empty-line" "an empty line before the request is refused",
        TakesBlankBeforeColon "blank-before-colon" "a space between field name and colon is served",
        TakesUnderscores "underscores" "an underscore in a field name is read as a hyphen",
        MistakesFolds "folds" "a folded line gets 302",
        HangsOnLeadingBlank "leading-blank" "a space before the first field hangs",
        TakesAnyLine "any-line" "invalid field lines are served",
        FailsOnControls "controls" "control characters in a value get 500",
        FailsOnBareCr "bare-cr" "a bare CR in a value gets 500",
        FailsOnBareLf "bare-lf" "a bare LF in a value gets 500",
        HangsOnLfLines "lf-lines" "a head with LF lines hangs",
        TakesAnyTarget "any-target" "forbidden characters in the target are served",
        FailsOnHighBytes "high-bytes" "bytes above 127 in the target get 500",
        KnowsNoAbsoluteForm "absolute-form" "the absolute form gets 404",
        ListensToHost "host-wins" "the absolute form with a different Host is refused",
        TakesAnyForm "any-form" "GET with an authority or an asterisk is served",
        FailsOnAsterisk "asterisk" "OPTIONS * gets 500",
        ConnectsAnywhere "connect" "CONNECT gets 200, whatever its port",
        RefusesMinorVersions "minor-version" "HTTP/1.9 gets 505",
        HangsOnMajorVersions "major-version" "HTTP/2.0 in a text request line hangs",
        TakesAnyVersion "any-version" "invalid versions are served",
        HangsOnHttp09 "http-0.9" "a line without a version hangs",
        LeavesTraces "leaves-traces" "after a refused request, the next error response to any \
            client has no head",
        TakesAnyMethod "any-method" "every method is served as GET",
        HangsOnGarbage "garbage" "bytes that are not a request line hang",
        BelievesLength "believes-length" "with both lengths, Content-Length is used and the \
            connection stays open",
        IgnoresChunks "ignores-chunks" "chunked content is parsed as the next request",
        AnswersTwice "answers-twice" "with both lengths, two responses are sent",
        KeepsAfterFaultyFraming "faulty-framing" "after Transfer-Encoding in HTTP/1.0 the \
            connection stays open",
        TakesAnyCoding "any-coding" "unknown codings are ignored",
        TakesChunkedAnywhere "chunked-anywhere" "chunked that is not last, or is repeated, is \
            served",
        ReadsNumbersFreely "free-numbers" "+1, 0x1, 1_0 and the like are accepted as lengths",
        TakesLastLength "last-length" "of two Content-Length fields the last is used",
        RefusesEqualLengths "equal-lengths" "two equal Content-Length fields get 500",
        Overflows "overflow" "lengths wrap at 64 bits",
        KeepsChunks "keeps-chunks" "each chunk size above 1 MiB allocates 32 MiB forever",
        GrowsAfterChunks "grows-after-chunks" "after a client gives up a chunk of more than 1 MiB, \
            the memory grows by 200 MB per second",
        ReadsSizesFreely "free-sizes" "chunk sizes are parsed up to the first invalid character",
        RefusesExtensions "extensions" "chunk extensions are refused",
        MergesTrailers "trailers" "a trailer is merged into the header, where a second Host gets \
            500",
        RefusesTrailers "no-trailers" "every trailer gets 500",
        ServesHalfBodies "half-bodies" "an incomplete body is processed",
        ForgetsHalfClosed "half-closed" "a client that closes inside a message is kept open",
        LeavesBodies "leaves-bodies" "the body of a GET is parsed as the next request",
        AnswersBackwards "backwards" "pipelined responses are sent in the wrong order",
        HangsAfterGarbage "garbage-behind" "garbage after a valid request hangs",
        IgnoresClose "ignores-close" "requests after Connection: close are served",
        SendsBodyToHead "head-body" "the response to HEAD has a body",
        WaitsForBody "no-continue" "no 100 is sent for Expect: the server waits for the body",
        Continues10 "continue-1.0" "100 is sent to HTTP/1.0",
        Upgrades "upgrades" "any upgrade gets 101",
        NamesNoMethods "no-allow" "405 has no Allow",
        HasNoDate "no-date" "responses have no Date",
        NamesNoType "no-type" "content has no Content-Type",
        OverflowsRanges "range-overflow" "ranges that overflow get 500",
        MultipliesRanges "range-multiply" "every range of a request is sent, including repeated \
            ones",
        BelievesBadDates "bad-dates" "an invalid date counts as now",
        RefusesWithoutAWord "silent-refusal" "refused requests are closed without a byte",
        StaysAfterRefusing "stays" "after 400 the connection stays open",
        FailsInsteadOfRefusing "fails" "requests to refuse get 500",
        HangsInsteadOfRefusing "hangs" "requests to refuse hang",
        FailsOnEncodedNul "fails-on-nul" "%00 in the target gets 500",
        HangsOnEncodedNul "hangs-on-nul" "%00 in the target hangs",
        DiesOnEncodedNul "dies-on-nul" "%00 in the target crashes the server",
        AbortsOnEncodedNul "aborts-on-nul" "%00 in the target kills the server's process with \
            signal 6",
        DiesOnPercentN "dies-on-percent-n" "%n in the target crashes the server; it is back \
            after 500 ms",
        FailsOnBodyNul "body-nul" "NUL in a body gets 500",
        FailsNowAndThen "now-and-then" "every fifth %00 in a target gets 500",
        RefusesCookies "cookies" "a request with a cookie gets 400",
        FailsOnOddCookies "odd-cookies" "a cookie that is not a name and a value gets 500",
        FailsOnCookieQuotes "cookie-quotes" "a cookie with a quote, a comma, a backslash or a \
            byte above 127 gets 500",
        FailsOnTwoCookies "two-cookies" "two Cookie fields, or two cookies with the same name, \
            get 500",
        FailsOnLongCookies "long-cookies" "cookies of more than 2 KiB in total get 500",
        IgnoresConditions "no-304" "conditional requests never get 304",
        ForgetsTag "bare-304" "304 has no ETag",
        AsksDateFirst "date-first" "If-Modified-Since takes precedence over If-None-Match",
        FailsOnOddConditions "odd-conditions" "tags without quotes, future dates and obsolete \
            date formats get 500",
        AbortsOnLateByte "late-byte" "a pipelined request that lacks its last byte kills the \
            server with signal 6; it is back after 500 ms",
        StallsOnOdd "stalls-on-odd" "the response to a refused request, or to %00 in the target, \
            has a head and no end",
        SplitsResponses "splits-responses" "the decoded query is copied into a field",
        ServesParents "serves-parents" "a decoded path with dots is served from outside the document root",
        LeadsAnywhere "leads-anywhere" "a path that starts with two slashes is redirected to its \
            host",
        RefusesLeadingZeros "leading-zeros" "a Content-Length with a leading zero gets 400",
        DiesOfAborts "dies-of-aborts" "a client that resets after two requests kills the server with \
            signal 6; it is back after 500 ms",
        TakesAnyExtension "any-extension" "chunk extensions are skipped to the end of their line, \
            whatever they contain",
        HangsOnEmptyBodies "empty-bodies" "a POST with empty content hangs",
        EchoesTraces "echoes-traces" "TRACE gets the request with all its fields",
        RangesPosts "ranges-posts" "a range is sent for any method",
        CrashesByChance "crashes-by-chance" "every 25th request crashes the server, whatever it is; \
            it is back after 500 ms",
        CrashesOnThirdNul "crashes" "every third %00 in a target crashes the server; it is back \
            after 500 ms",
    }
    Limit {
        LineOfAnyLength "no-line-limit" "a request line has no length limit",
        FieldOfAnyLength "no-field-limit" "field lines have no length limit, alone or together",
        AnyFields "no-count-limit" "the number of field lines has no limit",
        HeadOfAnyLength "no-head-limit" "field lines have no limit of any kind",
        BodyOfAnyLength "no-body-limit" "a body has no length limit",
        ReadsTooLongBodies "late-413" "a body beyond the limit is read completely before it is \
            refused",
        AnyExtensions "no-extension-limit" "chunk extensions have no limit on their total length",
        AnyTrailers "no-trailer-limit" "trailers have no limit on their total length",
        FailsAtLimits "limits-fail" "requests beyond a limit get 500",
        HangsAtLimits "limits-hang" "requests beyond a limit hang",
        SaysBadRequestAtLimits "limits-400" "requests beyond any limit get 400",
        LosesErrors "lost-error" "requests beyond a limit are reset, and the error response is \
            lost",
        SlowFields "slow-fields" "work is quadratic in the number of field lines",
        SlowPairs "slow-pairs" "work is quadratic in the number of query pairs, path segments \
            and cookies",
        SlowExpression "slow-expression" "a regular expression backtracks over a field value: \
            work is quadratic in the longest run of one letter",
        FailsOnManyPairs "many-pairs" "more than 500 pairs or segments get 500",
        SlowChunks "slow-chunks" "work is quadratic in the number of chunks",
        HangsOnExtensions "hangs-on-extensions" "a chunk extension of 1 KiB occupies one of \
            eight workers forever",
        DiesOfLongField "dies-of-long-field" "a field line of 9,000 bytes kills the server with \
            signal 6; it is back after 500 ms",
        DiesOfPipelined "dies-of-pipelined" "the ninth of simultaneous requests kills the server \
            with signal 6; it is back after 500 ms",
        ForgetsPipelined "forgets-pipelined" "the ninth of simultaneous requests gets no response",
    }
    Deadline {
        WaitsForSilent "no-silent-deadline" "a silent connection has no timeout",
        WaitsForHeads "no-head-deadline" "a head has no timeout",
        HeadPerRead "head-per-read" "the timeout of a head restarts with each byte",
        WaitsForBodies "no-body-deadline" "a body has no timeout",
        BodyPerRead "body-per-read" "the timeout of a body restarts with each byte",
        WaitsForIdle "no-idle-deadline" "an idle connection has no timeout",
        WaitsForReaders "no-send-deadline" "an unread response has no timeout",
    }
    Connection {
        SlowReads "slow-reads" "work is quadratic in the number of reads of a message",
        RefusesSplitHeads "split-heads" "a head that arrives in more than one read is refused",
        RepeatsAnswers "repeats" "the fifth response on a connection repeats the previous one",
        MixesPipelined "mixes-pipelined" "the second of simultaneous requests gets the last \
            response of another client",
        MixesAborted "mixes-aborted" "the last response to a client that resets is also sent to \
            the next client",
        MixesRefused "mixes-refused" "after a refusal the next client gets the last response of \
            another",
        MixesCrowd "mixes-crowd" "with more than 20 open connections, a client gets the last \
            response of another",
        DropsHalfClosed "drops-half-closed" "a client that half-closes gets no response",
    }
    Pressure {
        TooStrict "too-strict" "receiving a message or sending a response may take one second in \
            total",
        FewSlots "few-slots" "eight connections are served at once, idle or not; others wait",
        FewWorkers "few-workers" "eight requests are processed at once, including incomplete ones",
        Sheds "sheds" "beyond eight connections clients get 503",
        RecoversSlowly "slow-recovery" "once all eight workers were busy, there are no responses \
            for 10 s",
        LosesSlotsToResets "leak-per-reset" "each connection that a client resets occupies one \
            of 64 slots forever",
        LosesSlotsToCloses "leak-per-close" "each connection closed before a response occupies \
            one of 64 slots forever",
        ShortBacklog "short-backlog" "the accept queue has five places, and one connection is \
            accepted every 10 ms",
        LosesSomeSlots "leak-some" "every fourth connection that a client resets occupies one of \
            108 slots forever; idle connections occupy one each too",
        KeepsMemory "memory" "each request leaks 64 KiB",
        KeepsBodies "keeps-bodies" "each body that a client aborts leaks 512 KiB",
        KeepsDescriptors "descriptors" "each connection that a client resets leaks a descriptor",
    }
    Overload {
        LimitedRate "capacity" "no defect: 100 requests per second are served, the others wait",
        Collapses "collapse" "at 100 requests per second, the more wait, the fewer are served",
        Lingers "hangover" "at 100 requests per second, none is served for 18 s once 30 have \
            waited",
        DiesOfLoad "dies-of-load" "at 100 requests per second, 30 wait and the next one kills \
            the server",
        StarvesCheap "starves-cheap" "at 100 requests per second, those to /costly count \
            tenfold, and the others wait for them",
        Drifts "drift" "at 100 requests per second, each one slows down all others by a thousandth",
        DiesOfMany "dies-of-many" "50 connections can be open, and the next one kills the server",
        LosesInFlight "loses-in-flight" "when it is restarted, requests in flight are reset",
        StaysAway "stays-away" "when it is restarted, it does not come back",
        DiesStarved "dies-starved" "when a resource is withdrawn, the next request kills it",
        SilentStarved "silent-starved" "when a resource is withdrawn, requests hang",
        StaysStarved "stays-starved" "it does not recover when a resource is restored",
        ShedsLoad "sheds-load" "at 100 requests per second, 10 wait and the others get 503",
    }
    Frames {
        DiesOfLongFrame "dies-of-long-frame" "an HTTP/2 frame with a declared length above \
            40,000 bytes crashes the server; it is back after 500 ms",
        KeepsResetStreams "keeps-reset-streams" "an HTTP/2 stream that a client resets counts \
            forever among the 100 of its connection",
        MixesTables "mixes-tables" "the HPACK table is lost between two header blocks",
        ServesConnect "serves-connect" "CONNECT is served over HTTP/2 like any other method",
    }
    Streams {
        DiesOfDataFirst "dies-of-data-first" "DATA before HEADERS on an HTTP/3 stream crashes \
            the server; it is back after 500 ms",
        KeepsCancelledStreams "keeps-cancelled-streams" "an HTTP/3 stream that a client cancels \
            counts forever among the 100 of its connection",
        HangsOnInsertCount "hangs-on-insert-count" "an HTTP/3 field section blocked on table \
            entries occupies one of eight workers forever",
    }
    Tables {
        GrowsTables "grows-tables" "the QPACK table capacity has no limit, whatever SETTINGS \
            allows",
        PassesOverInstructions "passes-over-instructions" "invalid QPACK table instructions are \
            ignored",
        OverfillsTables "overfills-tables" "its own QPACK table exceeds the client's limit by \
            one byte",
        RefersBeyondTables "refers-beyond-tables" "its responses refer to a missing QPACK table \
            entry",
        BlocksReaders "blocks-readers" "its responses refer to the QPACK table on more blocked \
            streams than allowed",
        EvictsReferenced "evicts-referenced" "it evicts an entry of its own QPACK table that \
            unacknowledged responses refer to",
    }
    Packets {
        PassesOverForbidden "passes-over-forbidden" "HANDSHAKE_DONE and NEW_TOKEN from a client \
            are ignored",
        TakesAnyAck "takes-any-ack" "an acknowledgment of a packet never sent is ignored",
        KeepsNoWindow "keeps-no-window" "bytes after the first 1,000,000 of a stream are \
            ignored, whatever its window is",
        AnswersNoChallenge "answers-no-challenge" "PATH_CHALLENGE gets no response",
        ServesEarly "serves-early" "requests in HTTP/3 early data are served before the \
            handshake completes, whatever their method",
        TakesAnyHandshakeFrame "takes-any-handshake-frame" "frames not allowed in Handshake \
            packets are ignored",
        FollowsNoKeyUpdate "follows-no-key-update" "QUIC packets with updated keys are dropped",
        PassesOverAlerts "passes-over-alerts" "a TLS error in the QUIC handshake is ignored",
        TakesAnyParameter "takes-any-parameter" "invalid transport parameters are ignored",
        ClosesOnStaleTickets "closes-on-stale-tickets" "a connection with undecryptable early \
            data is closed",
    }
    Segments {
        StandsStillUnread "stands-still-unread" "a client that does not read a response blocks \
            all others, for 10 s at most",
    }
    Sockets {
        UpgradesAnyVersion "ws-any-version" "a WebSocket handshake of any version gets 101",
        UpgradesAnyKey "ws-any-key" "a WebSocket handshake without a valid key gets 101",
        UpgradesAnything "ws-any-request" "a WebSocket handshake by POST, in HTTP/1.0 or without \
            Connection: Upgrade gets 101",
        UpgradesAnyOrigin "ws-any-origin" "a WebSocket handshake from a page of another site gets \
            101",
        AcceptsWrongly "ws-wrong-accept" "Sec-WebSocket-Accept is the same for every key",
        NamesNoVersion "ws-no-version" "426 has no Sec-WebSocket-Version",
        ChoosesAnyProtocol "ws-any-protocol" "101 names a subprotocol that was not offered",
        TakesBodiesForFrames "ws-body" "the content of a WebSocket handshake is read as frames",
        StaysOnRefusal "ws-tunnel" "after a refused WebSocket handshake the connection no longer \
            gets responses",
        TakesUnmasked "ws-unmasked" "WebSocket frames without a mask are accepted",
        TakesLongLengths "ws-long-lengths" "WebSocket lengths that are not in their shortest form, \
            or have the highest bit, are accepted",
        DiesOfHugeLength "ws-huge-length" "a WebSocket frame of 2^62 bytes or more kills the \
            server with its header",
        IgnoresReserved "ws-reserved" "reserved bits and opcodes of WebSocket frames are ignored",
        TakesAnyControl "ws-any-control" "long and fragmented WebSocket control frames are \
            accepted",
        TakesAnyFragment "ws-any-fragment" "WebSocket fragments are accepted in any order",
        RefusesFragments "ws-no-fragments" "a fragmented WebSocket message is refused",
        TakesAnyText "ws-any-text" "WebSocket text that is not UTF-8 is accepted",
        ChecksFragments "ws-torn-text" "a character that continues in the next WebSocket fragment \
            is refused",
        TakesAnyClose "ws-any-close" "invalid codes and reasons of a WebSocket close are repeated",
        StaysAfterClose "ws-stays" "a WebSocket close gets no response, and the connection stays \
            open",
        AnswersNoPing "ws-no-pong" "WebSocket pings get no response",
        CutsPongs "ws-cut-pong" "WebSocket pongs have half the payload of their ping",
        TakesAnyMessage "ws-any-message" "a WebSocket message has no size limit",
        TakesAnyFragments "ws-any-fragments" "a WebSocket message has any number of fragments",
        InflatesAnything "ws-bomb" "a WebSocket message has no limit after inflation",
        TakesBadDeflate "ws-bad-deflate" "a compressed WebSocket message that cannot be inflated \
            is ignored",
        DiesOfPings "ws-dies-of-pings" "the 5,001st ping on a WebSocket kills the server; it is \
            back after 500 ms",
    }
    Tunnels {
        TakesBadConnect "ws-h2-any-request" "a malformed extended CONNECT opens a WebSocket",
        TunnelsAnyProtocol "ws-h2-any-protocol" "an extended CONNECT for any protocol opens a \
            WebSocket",
        SendsUpgradeFields "ws-h2-upgrade-fields" "the response to an extended CONNECT has the \
            fields of HTTP/1.1",
        NeedsWholeFrames "ws-h2-whole-frames" "a WebSocket frame in several DATA frames is refused",
        IgnoresStreamEnd "ws-h2-no-end" "the end of a WebSocket's stream is ignored",
        ClosesOnReset "ws-h2-reset" "the reset of a WebSocket's stream inside a frame ends the \
            connection",
        IgnoresWindows "ws-h2-ignores-windows" "WebSocket frames are sent beyond the windows of \
            HTTP/2",
        BlocksOnWindow "ws-h2-blocks" "a WebSocket that waits for its window stops all streams of \
            its connection",
        AnnouncesNoTunnels "ws-h2-unannounced" "extended CONNECT is refused, and not announced",
        FailsTogether "ws-h2-fails-together" "a WebSocket that fails ends its HTTP/2 connection",
    }
    Calls {
        ServesCutMessages "grpc-cut" "a gRPC message that is shorter than its prefix is served",
        AllocatesMessages "grpc-allocates" "a gRPC prefix of more than 4 MiB kills the server; it \
            is back after 500 ms",
        CallsAnyFlag "grpc-any-flag" "unknown flags of gRPC messages are ignored",
        SkipsBadGzip "grpc-bad-gzip" "a gRPC message that cannot be decompressed counts as empty",
        InflatesCalls "grpc-bomb" "a gRPC message has no limit after decompression",
        ServesAnyNumber "grpc-any-number" "a unary gRPC call may have any number of messages",
        NeedsWholePrefixes "grpc-whole-prefix" "a gRPC prefix in several DATA frames is refused",
        ReadsOn "grpc-reads-on" "content after the end of a gRPC call is ignored",
        ReadsPadding "grpc-padding" "padding counts as content of a gRPC call",
        ServesBadMessages "grpc-bad-message" "a malformed gRPC message counts as empty",
        NestsWithoutEnd "grpc-deep" "a gRPC message with 1,000 nested groups kills the server; it \
            is back after 500 ms",
        CallsAnyTe "grpc-any-te" "gRPC calls are served with any te",
        CallsAnyType "grpc-any-type" "gRPC calls are served with any content type",
        CallsAnyMethod "grpc-any-method" "gRPC calls are served with any HTTP method",
        ServesEveryMethod "grpc-every-method" "unknown gRPC methods are served",
        WrapsTimeouts "grpc-timeout-wraps" "a grpc-timeout of more than 24 days has passed at once",
        BadBase64EndsConnections "grpc-base64" "gRPC metadata that is not base64 ends the \
            connection",
        RepeatsStatus "grpc-repeats-status" "the grpc-status of a client is repeated in the \
            trailers",
        MetadataEndsConnections "grpc-metadata" "gRPC metadata above 16 KiB ends the connection",
        CallsAnyEncoding "grpc-any-encoding" "a gRPC message in an unknown encoding counts as empty",
        WritesRawMessages "grpc-raw-message" "grpc-message is not percent-encoded",
        CallsNeedAuthority "grpc-authority" "a gRPC call without :authority gets 500",
        CallsWithoutDeadline "grpc-no-deadline" "grpc-timeout is ignored once a call runs",
        NeedsWideWindows "grpc-wide-window" "a gRPC response that exceeds its window is reset",
        CancelsExcess "grpc-cancels" "more streams than allowed get CANCEL",
        FailsWithoutStatus "grpc-no-status" "failed gRPC calls have no grpc-status",
        CountsPings "grpc-pings" "the second PING on a connection ends it",
        LeavesOnGoaway "grpc-goaway" "after a client's GOAWAY its gRPC calls get no response",
        ForgetsCalls "grpc-forgets" "the eleventh gRPC call of a connection gets no response",
        DiesOfCutCalls "grpc-dies-of-cut" "a connection that ends inside a gRPC call kills the \
            server; it is back after 500 ms",
        ReflectsToAll "grpc-reflection" "gRPC reflection is open to all clients",
        KnowsEveryService "grpc-health" "every gRPC service is healthy",
        OpensChannelz "grpc-channelz" "Channelz is open to all clients",
    }
    Mutation {
        DiesOfTrailedExtension "dies-of-trailed-extension" "a last chunk with an extension gets \
            202, with a trailer after it 203, and with two trailers it crashes the server; it is \
            back after 500 ms",
    }
}
