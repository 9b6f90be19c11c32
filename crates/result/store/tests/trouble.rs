//! Stores in every state that a disk may leave them in: no data is lost, no other file is changed.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its scene has failed")]

use plan::Plan;
use rusqlite::Connection;
use sample::Environment;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::{
    Beginning, Filter, ListEntry, Progress, ResultKind, RunId, Store, StoreError, StorePlace,
};
use tempfile::TempDir;

fn folder() -> (TempDir, PathBuf, StorePlace) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let place = StorePlace::File(path.clone());
    (folder, path, place)
}

#[track_caller]
fn begin(store: &mut Store, name: &str) -> RunId {
    let plan = Plan::for_url("http://h/".parse().unwrap());
    let environment = Environment::default();
    let beginning = Beginning {
        name,
        plan: &plan,
        command_line: "loadstone run h",
        environment: &environment,
        started_unix_s: 1_795_235_590.0,
        labels: &[],
        commands: &[],
        axis: stats::curve::Axis::Rate,
    };
    store.begin(ResultKind::Run, &beginning).unwrap()
}

fn names(store: &Store) -> Vec<String> {
    let entries = store.list(&Filter::default()).unwrap();
    entries.into_iter().map(|entry: ListEntry| entry.name).collect()
}

fn files(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_missing_folder_is_reported_and_not_created() {
    let (folder, ..) = folder();
    let path = folder.path().join("a/b/runs.db");
    let error = Store::open(&StorePlace::File(path.clone())).unwrap_err();
    assert!(matches!(error, StoreError::NoFolder(_)), "{error:?}");
    let (found, parent) = (error.to_string(), path.parent().unwrap().display().to_string());
    assert!(found.contains(&parent) && found.contains("--store"), "{found}");
    assert!(files(folder.path()).is_empty());
}

#[test]
fn only_the_owner_can_read_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, ..) = folder();
    let path = folder.path().join("runs.db");
    let mut store = Store::open(&StorePlace::File(path.clone())).unwrap();
    begin(&mut store, "one");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(store.notes.is_empty());
}

#[test]
fn foreign_files_are_left_alone() {
    let (own, path, place) = folder();
    let sqlite = || Connection::open(&path).unwrap().execute_batch("CREATE TABLE t (a)").unwrap();
    let makers: [&dyn Fn(); 3] = [
        &|| fs::write(&path, "dear diary\n".repeat(100)).unwrap(),
        &|| fs::write(&path, "short").unwrap(),
        &sqlite,
    ];
    for make in makers {
        fs::remove_file(&path).ok();
        make();
        let before = fs::read(&path).unwrap();
        for opened in [Store::open(&place), Store::open_to_read(&place)] {
            assert_eq!(opened.unwrap_err(), StoreError::Foreign(path.clone()));
        }
        assert_eq!(fs::read(&path).unwrap(), before);
    }
    let error = Store::open(&StorePlace::File(own.path().to_owned())).unwrap_err();
    assert!(matches!(error, StoreError::Foreign(_)), "a folder: {error:?}");
    let socket = own.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let device = Path::new("/dev/null");
    for special in [socket.as_path(), device] {
        let error = Store::open(&StorePlace::File(special.to_owned())).unwrap_err();
        assert_eq!(error, StoreError::Foreign(special.to_owned()));
        let journal = format!("{}-journal", special.display());
        assert!(!Path::new(&journal).exists(), "nothing is made beside it");
    }
}

#[test]
fn a_damaged_store_is_renamed_and_replaced() {
    let (folder, path, place) = folder();
    for round in 1..=2 {
        let mut store = Store::open(&place).unwrap();
        for number in 0..50 {
            begin(&mut store, &format!("{number} {}", "x".repeat(500)));
        }
        drop(store);
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[4_096..middle].fill(0xa5);
        fs::write(&path, &bytes).unwrap();
        let error = Store::open_to_read(&place).and_then(|store| store.list(&Filter::default()));
        assert!(matches!(error, Err(StoreError::Damaged { .. })), "{error:?}");
        assert_eq!(fs::read(&path).unwrap(), bytes, "reading changes nothing");
        let mut store = Store::open(&place).unwrap();
        assert_eq!(store.notes.len(), 1);
        let kept = format!("runs.db.damaged-{round}");
        assert!(store.notes[0].contains(&kept), "{}", store.notes[0]);
        assert_eq!(fs::read(folder.path().join(&kept)).unwrap(), bytes);
        assert_eq!(names(&store), Vec::<String>::new());
        assert_eq!(begin(&mut store, "new").to_string(), "run-1");
        drop(store);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_later_schema_is_refused_and_left_as_is() {
    let (_folder, path, place) = folder();
    drop(Store::open(&place).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let before = fs::read(&path).unwrap();
    for opened in [Store::open(&place), Store::open_to_read(&place)] {
        let error = opened.unwrap_err();
        assert!(matches!(error, StoreError::Newer { version: 99, .. }), "{error:?}");
        assert!(error.to_string().contains("use that version"), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn two_programs_write_in_one_store() {
    let (_folder, _path, place) = folder();
    let place = Arc::new(place);
    let write = |name: &'static str| {
        let place = place.clone();
        std::thread::spawn(move || {
            let mut store = Store::open(&place).unwrap();
            (0..40).map(|_| begin(&mut store, name).to_string()).collect::<Vec<_>>()
        })
    };
    let both = [write("a"), write("b")];
    let mut ids: Vec<String> = both.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 80, "no id is given twice");
    assert_eq!(names(&Store::open_to_read(&place).unwrap()).len(), 80);
}

#[test]
fn a_store_in_use_is_reported_as_locked() {
    let (_folder, path, place) = folder();
    let mut store = Store::open(&place).unwrap();
    let holder = Connection::open(&path).unwrap();
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let plan = Plan::for_url("http://h/".parse().unwrap());
    let beginning = Beginning {
        name: "one",
        plan: &plan,
        command_line: "",
        environment: &Environment::default(),
        started_unix_s: 0.0,
        labels: &[],
        commands: &[],
        axis: stats::curve::Axis::Rate,
    };
    let error = store.begin(ResultKind::Run, &beginning).unwrap_err();
    assert_eq!(error, StoreError::Locked(path));
    holder.execute_batch("ROLLBACK").unwrap();
    assert_eq!(begin(&mut store, "one").to_string(), "run-1");
}

#[test]
fn a_name_that_cannot_be_made_is_refused_with_its_path() {
    let (folder, path, _place) = folder();
    fs::write(&path, "").unwrap();
    let below = path.join("runs.db");
    let error = Store::open(&StorePlace::File(below.clone())).unwrap_err();
    assert!(error.to_string().contains(&*below.to_string_lossy()), "{error}");
    let missing = StorePlace::File(folder.path().join("gone.db"));
    let error = Store::open_to_read(&missing).unwrap_err();
    assert!(matches!(error, StoreError::Missing(_)), "{error:?}");
    assert_eq!(files(folder.path()), ["runs.db"], "looking makes no file");
    assert_eq!(Store::open(&StorePlace::None).unwrap_err(), StoreError::Off);
}

#[test]
fn tags_name_one_result_each_and_are_not_ids() {
    let mut store = Store::open(&StorePlace::Memory).unwrap();
    let (one, two) = (begin(&mut store, "one"), begin(&mut store, "two"));
    assert_eq!(store.tag(&one, "before/v1.2").unwrap(), None);
    assert_eq!(store.find("before/v1.2").unwrap(), one);
    assert_eq!(store.tag(&two, "before/v1.2").unwrap(), Some(one.clone()));
    assert_eq!(store.find("before/v1.2").unwrap(), two);
    assert_eq!(store.show("last").unwrap().tags, ["before/v1.2"]);
    for tag in ["", "7", "run-7", "last", "last~2", "-x", "a b", "a\n", &"x".repeat(65)] {
        assert!(matches!(store.tag(&one, tag), Err(StoreError::BadTag { .. })), "{tag:?}");
    }
    assert_eq!(store.untag("before/v1.2").unwrap(), two);
    assert!(store.untag("before/v1.2").is_err());
    assert!(store.untag("run-1").is_err(), "an id is no tag");
    for (wanted, found) in [("1", &one), ("run-1", &one), ("last", &two), ("last~1", &one)] {
        assert_eq!(store.find(wanted).unwrap(), *found, "{wanted}");
    }
    for wanted in ["3", "ramp-1", "last~2", "last~x", "last~", "", "run-", "9999999999999999999999"]
    {
        assert!(matches!(store.find(wanted), Err(StoreError::Unknown { .. })), "{wanted}");
    }
}

#[test]
fn lists_are_filtered() {
    let mut store = Store::open(&StorePlace::Memory).unwrap();
    for name in ["http://a/x", "http://b/x", "http://a/Y"] {
        begin(&mut store, name);
    }
    let two = store.find("2").unwrap();
    store.tag(&two, "t").unwrap();
    let list = |filter: &Filter| -> Vec<String> {
        let entries = store.list(filter).unwrap();
        entries.into_iter().map(|entry| entry.id.to_string()).collect()
    };
    let all = Filter::default();
    assert_eq!(list(&all), ["run-3", "run-2", "run-1"]);
    assert_eq!(list(&Filter { name: Some("A/".into()), ..all.clone() }), ["run-3", "run-1"]);
    assert_eq!(list(&Filter { tag: Some("t".into()), ..all.clone() }), ["run-2"]);
    assert_eq!(list(&Filter { count_max: Some(2), ..all.clone() }), ["run-3", "run-2"]);
    assert!(list(&Filter { kind: Some(ResultKind::Ramp), ..all.clone() }).is_empty());
    assert!(list(&Filter { since_unix_s: Some(1_795_235_591.0), ..all.clone() }).is_empty());
    assert_eq!(list(&Filter { since_unix_s: Some(1_795_235_590.0), ..all }).len(), 3);
}

#[test]
fn exported_results_are_imported_under_new_names() {
    let (folder, _path, place) = folder();
    let mut store = Store::open(&place).unwrap();
    let ids: Vec<RunId> = ["one", "two", "three"].map(|name| begin(&mut store, name)).into();
    store.tag(&ids[1], "t").unwrap();
    let file = folder.path().join("some.db");
    store.export(&file, &ids[1..]).unwrap();
    assert!(store.export(&file, &ids).is_err(), "no file is written over");
    assert!(store.export(Path::new(":memory:"), &ids).is_err(), "no file at all");
    assert!(!files(folder.path()).iter().any(|name| name.starts_with("some.db-")), "one file");

    let mut other = Store::open(&StorePlace::Memory).unwrap();
    begin(&mut other, "own");
    let imported = other.import(&file).unwrap();
    let taken: Vec<String> =
        imported.taken.iter().map(|(there, here)| format!("{there} {here}")).collect();
    assert_eq!(taken, ["run-2 run-2", "run-3 run-3"]);
    assert_eq!(names(&other), ["three", "two", "own"]);
    assert_eq!(other.show("t").unwrap().name, "two");
    assert_eq!(other.show("t").unwrap().progress, Progress::Killed, "nobody writes the copy");
    let again = other.import(&file).unwrap();
    assert_eq!((again.taken.len(), again.known.len(), again.notes.len()), (0, 2, 0));

    let mut third = Store::open(&StorePlace::Memory).unwrap();
    for number in 0..5 {
        begin(&mut third, &format!("own {number}"));
    }
    let own = third.find("1").unwrap();
    third.tag(&own, "t").unwrap();
    let imported = third.import(&file).unwrap();
    assert_eq!(imported.taken[0].1.to_string(), "run-6");
    assert_eq!(imported.tags_left, ["t"]);
    assert_eq!(third.find("t").unwrap(), own);
    assert!(matches!(third.import(&folder.path().join("no.db")), Err(StoreError::Missing(_))));
}

#[test]
fn a_file_made_by_others_is_not_imported() {
    let (folder, path, place) = folder();
    drop(Store::open(&place).unwrap());
    let file = Connection::open(&path).unwrap();
    file.execute_batch("CREATE VIEW extra AS SELECT 1").unwrap();
    drop(file);
    let mut store = Store::open(&StorePlace::File(folder.path().join("own.db"))).unwrap();
    assert_eq!(store.import(&path).unwrap_err(), StoreError::Foreign(path));
}

#[test]
fn deleting_takes_a_result_and_all_its_rows() {
    let (_folder, path, place) = folder();
    let mut store = Store::open(&place).unwrap();
    let id = begin(&mut store, "one");
    let total = stats::Snapshot::default();
    store.second(&id, 0, &stats::Second::default(), &total).unwrap();
    let other = begin(&mut store, "two");
    assert_eq!(
        store.delete(std::slice::from_ref(&id)).unwrap_err(),
        StoreError::Running("run-1".into())
    );
    // as if its program had ended
    let file = Connection::open(&path).unwrap();
    file.execute("UPDATE result SET writer = 'gone'", []).unwrap();
    store.delete(&[id]).unwrap();
    assert_eq!(names(&store), ["two"]);
    for table in ["trial", "second", "histogram"] {
        let left: i64 =
            file.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "{table}");
    }
    store.delete(&[other]).unwrap();
    assert_eq!(begin(&mut store, "three").to_string(), "run-3", "numbers are not given twice");
}

/// Whatever the list's columns contain, the other results are still listed.
#[test]
fn one_damaged_row_is_listed_as_damaged_among_the_others() {
    let (_folder, path, place) = folder();
    let mut store = Store::open(&place).unwrap();
    begin(&mut store, "before");
    let spoilt = begin(&mut store, "spoilt");
    begin(&mut store, "after");
    for damage in [
        "summary = 'no json'",
        "summary = '{\"headline\": 7}'",
        "summary = '[1]'",
        "summary = CAST(x'ff00' AS TEXT)",
        "verdict = 'no such verdict'",
        "verdict = 7",
        "kind = 'ramp', body = '{\"axis\": 7}'",
        "kind = 'x'",
        "kind = CAST(x'ff00' AS TEXT)",
        "summary = '[1]', command_line = CAST(x'ff00' AS TEXT)",
    ] {
        let file = Connection::open(&path).unwrap();
        let damaged =
            file.execute(&format!("UPDATE result SET {damage} WHERE name = 'spoilt'"), []);
        assert_eq!(damaged.unwrap(), 1, "{damage}");
        let entries = store.list(&Filter::default()).unwrap();
        let states: Vec<_> = entries.iter().map(|entry| (&*entry.name, entry.progress)).collect();
        let expected = [
            ("after", Progress::Running),
            ("spoilt", Progress::Damaged),
            ("before", Progress::Running),
        ];
        assert_eq!(states, expected, "{damage}");
        assert_eq!(store.show(&entries[1].id.to_string()).unwrap().progress, Progress::Damaged);
        let whole = "summary = NULL, verdict = NULL, kind = 'run', body = '{}'";
        file.execute(&format!("UPDATE result SET {whole} WHERE name = 'spoilt'"), []).unwrap();
        let states = store.list(&Filter::default()).unwrap();
        assert_eq!(states[1].progress, Progress::Running, "{spoilt} is whole again");
    }
}

/// Invalid text hides neither its own result nor any other.
#[test]
fn invalid_text_bytes_hide_no_result() {
    let (_folder, path, place) = folder();
    let mut store = Store::open(&place).unwrap();
    begin(&mut store, "spoilt");
    begin(&mut store, "other");
    let file = Connection::open(&path).unwrap();
    for column in ["name", "state", "writer", "body"] {
        let spoil = format!("UPDATE result SET {column} = CAST(x'ff' AS TEXT) WHERE number = 1");
        file.execute(&spoil, []).unwrap();
        assert_eq!(names(&store)[0], "other", "{column}");
        assert_eq!(names(&store).len(), 2, "{column}");
    }
    let Err(StoreError::DamagedResult { result, .. }) = store.load("1") else {
        panic!("it is damaged");
    };
    assert_eq!(result, "run-1");
}

/// A result keeps its number even if its kind is unreadable.
#[test]
fn a_result_of_damaged_kind_is_listed_by_number() {
    let (_folder, path, place) = folder();
    let mut store = Store::open(&place).unwrap();
    begin(&mut store, "spoilt");
    begin(&mut store, "other");
    let file = Connection::open(&path).unwrap();
    file.execute("UPDATE result SET kind = 'x', writer = 'gone' WHERE number = 1", []).unwrap();
    let spoilt = store.find("1").unwrap();
    assert_eq!(spoilt.to_string(), "1");
    assert_eq!(store.find("last~1").unwrap(), spoilt);
    let entry = store.show("1").unwrap().record();
    assert_eq!((entry.id.as_str(), entry.kind), ("1", None));
    let Err(StoreError::DamagedResult { result, why, .. }) = store.load("1") else {
        panic!("it is damaged");
    };
    assert_eq!((result.as_str(), why.as_str()), ("1", "\"x\" is not a kind of results"));
    let run = Filter { kind: Some(ResultKind::Run), ..Filter::default() };
    assert_eq!(store.list(&run).unwrap().len(), 1);
    store.delete(&[spoilt]).unwrap();
    assert_eq!(names(&store), ["other"]);
}
