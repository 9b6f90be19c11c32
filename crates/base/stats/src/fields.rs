//! The fields of a snapshot and of everything within it, listed once.

/// Calls a macro with the fields of [`Snapshot`](crate::Snapshot) and of the types within it, by
/// type: `$with! { Counts { due, succeeded, ... } Backends { ... } ... }`.
///
/// A snapshot is sent between machines and stored during a run. Both conversions are macros that
/// destructure each type by its list, so that a field that is missing here does not compile. The
/// caller imports the types.
#[macro_export]
macro_rules! snapshot_fields {
    ($with:ident) => {
        $with! {
            Counts {
                due, succeeded, failed, timed_out, dropped, abandoned, lost, queued, in_flight,
            }
            Backends { addresses, names, load }
            BackendTally { connections, calls }
            LoadTally { reports, malformed, cpu, memory, application, requests_per_s, errors_per_s }
            LoadFigure { reports, sum, most }
            Sessions { started, completed, failed, dropped }
            TargetTally { succeeded, failed, timed_out, body_bytes, warm_up, response }
            ScenarioTally {
                counts, intended, unissued, sessions_started, in_window, good_in_window,
                body_bytes, warm_up, response,
            }
            TlsFacts { version, cipher, group, resumed, key_bits, alpn }
            Connections {
                attempted, established, closed, setup_sum, judged, conforming, retransmits, rtt,
                stream_wait, tls, http2, http3, early, lives, backends,
            }
            Http2Facts {
                streams, streams_peak, streams_max, refused, resets, goaways, goaway_reasons,
                pings, pings_sent, pings_answered, fields_sent, coded_sent, fields_received,
                coded_received, violations, held_back, goaway_streams, control_received,
            }
            Http3Facts {
                streams, streams_peak, streams_max, waited, refused, resets, goaways, fields_sent,
                coded_sent, fields_received, coded_received, violations, quic, migration,
            }
            MigrationFacts {
                made, validated, forbidden, time_sum, time_min, time_max, calls, calls_lost,
            }
            EarlyFacts { sent, accepted, rejected, too_early }
            QuicFacts {
                handshakes, resumed, packets_sent, packets_lost, datagrams_received, bytes_sent,
                bytes_received, congestion_events, rtt_sum, rtt_min, rtt_max,
            }
            Snapshot {
                counts, warm_up, succeeded, failed, timed_out, service, slip, wait, lag, punctual,
                connect, tls, first_byte, transfer, plain, in_window, good_in_window,
                answers_in_window, bytes_in_window, exchange_sum, status, failures, bytes_sent,
                bytes_received, body_bytes, decoded_bytes, redirects, server_timings, streams,
                messages, targets, clients, scenarios, connections, sessions, journeys,
                flight_integral, flight_peak, spin, beats, instants, verified, failed_responses,
            }
            StreamTally {
                whole, empty, cut, events, in_window, first, gap, pace, sent, held_back, answer,
                tokens, steps, grpc,
            }
            StepStreams { whole, cut, events, first, gap }
            TokenTally { output, input, reporting, events, in_window }
            GrpcTally { statuses, unsent, messages }
            MessageTally {
                counts, in_window, handshake, gap, ping, silence, closes, violations, fan_out,
                reconnects,
            }
            ReconnectTally { lost, failed, times }
            FanOutTally {
                messages, complete, expected, received, duplicates, out_of_order, each, first,
                last,
            }
            SocketCounts {
                opened, compressed, carriers, sent, received, unmatched, late, frames_received,
                payload_sent, payload_received, wire_sent, wire_received, pings, pongs,
            }
            Verified { compared, wrong }
            WrongBody { at, target, of, expected, got }
            BodyPrint { length, hash }
            JourneyTally {
                missed, met, unmet, differed, skipped, refreshed, transactions, dry, metrics,
                aborted,
            }
            NumberTally { classes, above, below, ends, unreadable }
            Noted { count, example }
            TransactionTally { succeeded, failed, time }
            Lives { first, mean, served, unanswered, turned_away, answered, answered_open }
        }
    };
}
