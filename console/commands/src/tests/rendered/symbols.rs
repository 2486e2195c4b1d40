//! `.dump Symbols`.

use std::sync::Arc;

use handlescope_symbols::{
    MissingAt, ModuleIdentity, ModuleReport, PdbIdentity, SearchFailure, SearchOutcome,
    SymbolFileError, SymbolOrigin,
};

use super::*;

fn report(name: &str, outcome: SearchOutcome) -> ModuleReport {
    let pdb = PdbIdentity {
        name: format!(r"C:\build\{}.pdb", name.trim_end_matches(".dll")),
        guid: "0155fe84-c000-1eb1-57c6-858e85d46b4c".parse().expect("a guid"),
        age: 1,
    };
    let module = ModuleIdentity {
        name: name.to_owned(),
        path: String::new(),
        size: 0,
        timestamp: None,
        pdb: Some(pdb).filter(|_| outcome != SearchOutcome::NoPdbIdentity),
    };
    ModuleReport::new(module, outcome)
}

/// Returns modules with every kind of outcome.
fn saved() -> SavedTrace {
    let frames = ["a.dll!one", "a.dll!two", "b.dll+0x1", "c.dll+0x1", "d.dll+0x1", "d.dll!x"];
    let mut fixture = Fixture::new();
    let stack = fixture.stack(&frames);
    let outcome = SearchOutcome::Resolved { file: "/c/a.pdb".into(), was_converted: false };
    fixture.event_object(vec![create(APP, 1, 4).on(stack)]);

    let server = "https://symbols.example".to_owned();
    let missing = MissingAt { server: server.clone(), is_remembered: false, is_refused: false };
    let reason = "500 Internal Server Error".to_owned();
    let damaged =
        SymbolFileError::Malformed { path: "/f/b.pdb".into(), source: "no such stream".into() };
    let reports = vec![
        ModuleReport {
            origin: Some(SymbolOrigin::Server(server.clone())),
            ..report("a.dll", outcome)
        },
        ModuleReport {
            missing: vec![missing],
            skipped: vec!["https://dead.example".into()],
            refused: vec![Arc::new(damaged)],
            ..report("b.dll", SearchOutcome::NotFound)
        },
        report("c.dll", SearchOutcome::NoPdbIdentity),
        ModuleReport {
            failures: vec![SearchFailure { location: server, reason }],
            ..report("d.dll", SearchOutcome::ResolvedFromExports { file: "/f/d.dll".into() })
        },
    ];
    for report in &reports {
        let module = fixture.module(&report.module.name) as usize;
        if let Some(pdb) = &report.module.pdb {
            fixture.modules.pdb_name[module] = Some(pdb.name.clone());
            fixture.modules.pdb_guid[module] = Some(pdb.guid.to_string());
            fixture.modules.pdb_age[module] = Some(pdb.age);
        }
    }
    let mut saved = fixture.save();
    saved.reports = reports;
    saved
}

#[test]
fn modules_with_most_unnamed_frames_come_first_with_the_reason() {
    insta::assert_snapshot!(printed(&[&saved()], ".dump Symbols", Screen::PLAIN), @r"
    demo.etl
    Name   Frames  Named  Pdb                                           Symbols
    b.dll       1      0  b.pdb 0155fe84-c000-1eb1-57c6-858e85d46b4c 1  not found; https://symbols.example does not have it; https://dead.example: not asked again after its failures; /f/b.pdb is damaged, delete it or get it again: no such stream
    c.dll       1      0  -                                             the trace names no pdb
    d.dll       2      1  d.pdb 0155fe84-c000-1eb1-57c6-858e85d46b4c 1  no pdb, exports of /f/d.dll; https://symbols.example: 500 Internal Server Error
    a.dll       2      2  a.pdb 0155fe84-c000-1eb1-57c6-858e85d46b4c 1  server https://symbols.example
    4 modules, 2 with symbols; 3 of 6 frames have names
    ");
}

#[test]
fn modules_are_chosen_by_name() {
    let text = printed(&[&saved()], ".dump Symbols -md a*;!b*", Screen::PLAIN);
    assert!(text.contains("1 module, 1 with symbols; 2 of 2 frames have names"), "{text}");
}

#[test]
fn json_has_the_reasons_apart() {
    let document = json_of(&[&saved()], ".dump Symbols -Dll b.dll -json");
    assert_eq!(
        document,
        json!({ "symbols": [{
            "file": 0, "module": "b.dll", "path": "", "pdb_name": r"C:\build\b.pdb",
            "pdb_guid": "0155fe84-c000-1eb1-57c6-858e85d46b4c", "pdb_age": 1,
            "frames": 1, "frames_named": 0, "status": "not_found", "symbol_file": null,
            "found_in": null,
            "missing_at": [{ "server": "https://symbols.example", "remembered": false, "refused": false }],
            "skipped": ["https://dead.example"], "failures": [],
            "refused": ["/f/b.pdb is damaged, delete it or get it again: no such stream"],
        }] })
    );
}
