use super::*;
use crate::{Beginning, ResultKind};
use plan::Plan;
use sample::Environment;
use stats::{Second, Snapshot};

fn begin(store: &mut Store, name: &str) -> Result<crate::RunId, StoreError> {
    let beginning = Beginning {
        name,
        plan: &Plan::for_url("http://h/".parse().unwrap()),
        command_line: "",
        environment: &Environment::default(),
        started_unix_s: 0.0,
        labels: &[],
        commands: &[],
        axis: stats::curve::Axis::Rate,
    };
    store.begin(ResultKind::Run, &beginning)
}

/// A later schema version, as in a future release.
const NEXT: &[&str] = &[STEPS[0], "ALTER TABLE result ADD COLUMN remark TEXT"];

#[test]
fn an_older_store_is_brought_up_to_date_after_a_copy_was_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let place = StorePlace::File(path.clone());
    let mut store = Store::open(&place).unwrap();
    begin(&mut store, "from before").unwrap();
    drop(store);
    let store = Store::open_with(&place, NEXT).unwrap();
    let kept = folder.path().join("runs.db.schema-1-1");
    assert_eq!(store.notes.len(), 1);
    assert!(store.notes[0].contains("from schema 1 to 2"), "{}", store.notes[0]);
    let names = |store: &Store| -> Vec<String> {
        let entries = store.list(&crate::Filter::default()).unwrap();
        entries.into_iter().map(|entry| entry.name).collect()
    };
    assert_eq!(names(&store), ["from before"]);
    store.connection.execute("UPDATE result SET remark = 'new'", []).unwrap();
    drop(store);
    // the copy is the store of the version that was; that version refuses the new one
    let copy = Store::open_to_read(&StorePlace::File(kept)).unwrap();
    assert_eq!(names(&copy), ["from before"]);
    assert_eq!(copy.recognise(STEPS), Ok(()));
    let error = Store::open(&place).unwrap_err();
    assert_eq!(error, StoreError::Newer { path, version: 2, known: 1 });
}

#[test]
fn a_step_that_fails_leaves_the_store_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let place = StorePlace::File(folder.path().join("runs.db"));
    let mut store = Store::open(&place).unwrap();
    begin(&mut store, "from before").unwrap();
    drop(store);
    let broken = [STEPS[0], "CREATE TABLE half (a); SELECT nonsense FROM nowhere"];
    assert!(Store::open_with(&place, &broken).is_err());
    let store = Store::open_to_read(&place).unwrap();
    assert_eq!(store.show("last").unwrap().name, "from before");
    let half = "SELECT count(*) FROM sqlite_schema WHERE name = 'half'";
    assert_eq!(store.connection.query_row(half, [], |row| row.get::<_, i64>(0)), Ok(0));
}

#[test]
fn a_full_disk_is_reported_and_earlier_data_loads() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let mut store = Store::open(&StorePlace::File(path.clone())).unwrap();
    let id = begin(&mut store, "one").unwrap();
    let mut total = Snapshot::default();
    total.counts.due = 3;
    total.counts.succeeded = 3;
    let second = |at_s| Second { at_s, span_s: 1.0, ..Second::default() };
    store.second(&id, 0, &second(0.0), &total).unwrap();
    let pages: i64 = store.connection.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    store.connection.pragma_update(None, "max_page_count", pages + 1).unwrap();
    let full = (1..100_000).find_map(|n| store.second(&id, 0, &second(f64::from(n)), &total).err());
    assert_eq!(full, Some(StoreError::Full(path.clone())));
    assert!(StoreError::Full(path).to_string().contains("the disk is full"));
    let crate::Stored::Run(run) = store.load("last").unwrap() else { panic!("a run") };
    assert_eq!(run.outcomes.succeeded, 3);
}

/// A folder in which no file can be created; permissions do not apply to root, so a file replaces
/// the folder.
#[test]
fn a_store_in_a_read_only_folder_is_read_and_not_written() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let place = StorePlace::File(path.clone());
    let mut store = Store::open(&place).unwrap();
    begin(&mut store, "one").unwrap();
    store.connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(())).unwrap();
    drop(store);
    let mode = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o500);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    let read = Store::open_to_read(&place).and_then(|store| store.list(&crate::Filter::default()));
    let written = Store::open(&place).and_then(|mut store| begin(&mut store, "two").map(|_| ()));
    let bound = File::create(folder.path().join("probe")).is_err();
    mode(0o700);
    assert_eq!(read.unwrap().len(), 1);
    if bound {
        assert_eq!(written, Err(StoreError::ReadOnly(path)));
    }
}
