//! Texts as kernels print them.

use super::*;

#[test]
fn lists_of_cores_are_parsed() {
    for (text, expected) in [
        ("0\n", &[0][..]),
        ("0-3", &[0, 1, 2, 3]),
        ("0-1,4,6-7\n", &[0, 1, 4, 6, 7]),
        ("3,1", &[1, 3]),
        ("", &[]),
        ("\n", &[]),
        ("1-", &[]),
        ("3-1", &[]),
        ("a", &[]),
        ("0-4294967295", &[]),
        ("-1", &[]),
    ] {
        assert_eq!(cores(text), expected, "{text:?}");
    }
}

#[test]
fn the_machines_totals() {
    let text = "cpu  52470 97329 22782 582150 1685 7 154 155 11 12\n\
                cpu0 26047 47157 10410 294248 352 0 23 68 0 0\n\
                intr 5\n";
    let expected = Totals {
        user: 52_470,
        nice: 97_329,
        system: 22_782,
        idle: 582_150,
        iowait: 1_685,
        irq: 7,
        softirq: 154,
        steal: 155,
    };
    assert_eq!(totals(text), Some(expected));
    assert_eq!(expected.threads(), 172_581);
    assert_eq!(totals("cpu  1 2 3 4\n").map(|totals| totals.steal), Some(0));
    for damaged in ["", "cpu0 1 2 3 4\n", "cpu  1 2 3\n", "cpu  1 2 x 4\n"] {
        assert_eq!(totals(damaged), None, "{damaged:?}");
    }
}

#[test]
fn a_process_is_read_from_proc() {
    let rest = "S 1 842 842 0 -1 4194560 20345 991827 12 44 310 95 1200 340 20 0 5 0 3421 \
                248123392 5120 18446744073709551615 1 1 0 0 0 0 0";
    for (name, text) in [("nginx", "nginx"), ("a) R 2 (b", "a) R 2 (b"), ("", "")] {
        let expected = Process {
            parent: 1,
            name: text.to_owned(),
            ticks: 405,
            waited: 1_540,
            started: 3_421,
            state: 'S',
            status: None,
        };
        assert_eq!(process(&format!("842 ({name}) {rest}\n")), Some(expected));
    }
    for damaged in ["", "842", "842 (nginx", "842 nginx) S 1", ")(", "1 (x) S 1 2 3"] {
        assert_eq!(process(damaged), None, "{damaged:?}");
    }
}

#[test]
fn an_ended_process_has_its_status() {
    let zeros = "0 ".repeat(40);
    let text = format!("842 (nginx) Z 1 842 842 0 -1 4194560 1 2 {zeros}139\n");
    let process = process(&text).unwrap();
    assert_eq!((process.is_over(), process.status), (true, Some(139)));
}

#[test]
fn sockets_of_a_port_are_counted_by_state() {
    let line =
        |own: u16, state: &str| format!("0: 0100007F:{own:04X} 0100007F:C000 {state} 0:0 0\n");
    let table = format!(
        "  sl  local_address rem_address st\n{}{}{}{}{}x\n",
        line(80, "01"),
        line(80, "0A"),
        line(81, "01"),
        line(80, "08"),
        line(80, "FF")
    );
    assert_eq!(states(&table, 80).collect::<Vec<_>>(), ["established", "close-wait"]);
    assert_eq!(states("", 80).count(), 0);
}

const CPUINFO: &str = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 2\n\
    model name\t: AMD EPYC\nflags\t\t: fpu vme hypervisor lahf_lm\n\nprocessor\t: 1\n\
    model name\t: another\n";

#[test]
fn the_cpu_is_read_from_cpuinfo() {
    assert_eq!(cpu_model(CPUINFO), Some("AMD EPYC"));
    assert!(virtual_machine(CPUINFO));
    let arm = "processor\t: 0\nBogoMIPS\t: 108.00\nCPU part\t: 0xd08\n\n\
               Model\t\t: Raspberry Pi 4 Model B Rev 1.4\n";
    assert_eq!(cpu_model(arm), Some("Raspberry Pi 4 Model B Rev 1.4"));
    assert!(!virtual_machine(arm));
    assert_eq!(cpu_model("processor : 0\n"), None);
    assert_eq!(cpu_model("model name :\n"), None);
}

#[test]
fn memory_in_bytes() {
    let text = "MemTotal:        4014380 kB\nMemFree:          123456 kB\n";
    assert_eq!(memory(text), Some(4_014_380 * 1024));
    for damaged in ["", "MemTotal: 12\n", "MemTotal: x kB\n", "MemTotal: 99999999999999999999 kB"] {
        assert_eq!(memory(damaged), None, "{damaged:?}");
    }
}

#[test]
fn the_range_of_ports() {
    assert_eq!(port_range("32768\t60999\n"), Some((32_768, 60_999)));
    for damaged in ["", "32768", "60999 32768", "1 70000", "a b"] {
        assert_eq!(port_range(damaged), None, "{damaged:?}");
    }
}

#[test]
#[cfg(target_endian = "little")]
fn listening_sockets_are_found() {
    let v4 = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 637 1 0
   1: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 638 1 0
   2: 00000000:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 640 1 0
   3: rubbish
   4: 0100007F 00000000:0000 0A 0 0 0 0 0 0
";
    let found: Vec<(String, u64)> =
        listening(v4).iter().map(|it| (it.address.to_string(), it.inode)).collect();
    assert_eq!(found, [("127.0.0.1:8080".to_owned(), 637), ("0.0.0.0:2024".to_owned(), 640)]);
    let v6 = "\
  sl  local_address                         remote_address                        st
   0: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A \
00000000:00000000 00:00000000 00000000 0 0 77 1 0
   1: 0000000000000000FFFF00000100007F:0051 00000000000000000000000000000000:0000 0A \
00000000:00000000 00:00000000 00000000 0 0 78 1 0
   2: B80D01200000000000000000010000:0052 00000000000000000000000000000000:0000 0A \
00000000:00000000 00:00000000 00000000 0 0 79 1 0
";
    let found: Vec<(String, u64)> =
        listening(v6).iter().map(|it| (it.address.to_string(), it.inode)).collect();
    assert_eq!(found, [("[::1]:80".to_owned(), 77), ("[::ffff:127.0.0.1]:81".to_owned(), 78)]);
}

#[test]
fn unix_sockets_that_listen() {
    let table = "\
Num       RefCount Protocol Flags    Type St Inode Path
00000000cacc9603: 00000002 00000000 00010000 0001 01   634 /run/web.sock
00000000cacc9604: 00000003 00000000 00000000 0001 03   635 /run/web.sock
00000000cacc9605: 00000002 00000000 00010000 0001 01 63600 /run/a  b
00000000cacc9606: 00000003 00000000 00000000 0001 03   637
0: 1
";
    assert_eq!(listening_unix(table, "/run/web.sock"), [634]);
    assert_eq!(listening_unix(table, "/run/a  b"), [63_600]);
    assert!(listening_unix(table, "/run/a").is_empty());
    assert!(listening_unix(table, "").is_empty());
}

#[test]
fn links_to_sockets_are_parsed() {
    assert_eq!(socket_inode("socket:[634]"), Some(634));
    for other in ["pipe:[634]", "/dev/null", "socket:[]", "socket:[6", ""] {
        assert_eq!(socket_inode(other), None, "{other:?}");
    }
}

#[test]
#[cfg(target_endian = "little")]
fn open_connections_are_counted() {
    let table = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 637 1 0
   1: 0100007F:C001 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 638 1 0
   2: 0100007F:C002 0100007F:1F90 06 00000000:00000000 00:00000000 00000000     0        0 0 1 0
   3: 0100007F:C003 0100007F:1F90 05 00000000:00000000 00:00000000 00000000     0        0 0 1 0
   4: 0100007F:C004 0100007F:1F91 01 00000000:00000000 00:00000000 00000000     0        0 640 1 0
   5: 0100007F:1F90 0100007F:C001 01 00000000:00000000 00:00000000 00000000     0        0 641 1 0
nonsense
   6: 0100007F:C004 0100007F:XXXX 01
";
    let to = |address: &str| connected(table, &[address.parse().unwrap()]);
    // open, and closed by one side; not in TIME_WAIT, not the server's own end
    assert_eq!(to("127.0.0.1:8080"), 2);
    assert_eq!(to("[::ffff:127.0.0.1]:8080"), 2);
    assert_eq!(to("127.0.0.1:8081"), 1);
    assert_eq!(to("127.0.0.2:8080"), 0);
    assert_eq!(connected(table, &[]), 0);
}

#[test]
fn unusual_scheduling_is_reported() {
    let stat = |tail: &str| format!("7 (a b) c) R 1 {}{tail} 0 0", "0 ".repeat(35));
    assert_eq!(scheduling(&stat("0 0")), None);
    assert_eq!(scheduling(&stat("1 2")).as_deref(), Some("SCHED_RR 1"));
    assert_eq!(scheduling(&stat("99 1")).as_deref(), Some("SCHED_FIFO 99"));
    assert_eq!(scheduling(&stat("0 3")).as_deref(), Some("SCHED_BATCH"));
    assert_eq!(scheduling("7 (a) R 1"), None);
    assert_eq!(scheduling(""), None);
}

#[test]
fn the_wait_for_a_core_follows_the_time_on_one() {
    assert_eq!(core_wait("139054323 4210777 391\n"), Some(Nanos(4_210_777)));
    assert_eq!((core_wait("139054323"), core_wait("1 -1 1"), core_wait("")), (None, None, None));
}
