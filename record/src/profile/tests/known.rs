//! Elements and attributes that WPR accepts in a profile, and a check of all profiles against them.

use super::{Element, Events, ProviderSelection, profile_with};

/// A name that may appear in a profile.
struct Known {
    /// An element with its parent, a keyword with its provider, or a stack.
    name: &'static str,
    /// The attributes of an element.
    attributes: &'static [&'static str],
    /// The first build of WPR that accepts it: N in 10.0.N.
    since: u32,
    source: &'static str,
}

/// Build number for names used in profiles for all of Windows 10.
const WINDOWS_10: u32 = 10240;

/// The last build of WPR in Windows 10: versions 2004 to 22H2 share their files.
const LAST_WINDOWS_10: u32 = 19041;

const MSO_CLR: &str = "MSO, CLR.wprp";
const MSO_HANDLES: &str = "MSO, Handles.wprp";
const MSO_HEAP: &str = "MSO, Heap.wprp";
const ETW_ANALYZER: &str = "ETWAnalyzer, DumpObjectRefCommand.md";
const LEARN: &str = "learn, Stack";

const VALUE: &[&str] = &["Value"];
const CACHING: &[&str] = &["BucketCount", "CacheSize"];
const EVENT_PROVIDER: &[&str] = &["Id", "Name", "Level", "Stack", "NonPagedMemory"];
const PROFILE: &[&str] = &["Id", "Name", "Description", "DetailLevel", "LoggingMode", "Base"];

const fn element(
    name: &'static str,
    attributes: &'static [&'static str],
    source: &'static str,
) -> Known {
    Known { name, attributes, since: WINDOWS_10, source }
}

const fn known(name: &'static str, source: &'static str) -> Known {
    element(name, &[], source)
}

static ELEMENTS: [Known; 42] = [
    element("/WindowsPerformanceRecorder", &["Version", "Author"], MSO_HANDLES),
    element("WindowsPerformanceRecorder/Profiles", &[], MSO_HANDLES),
    element("Profiles/SystemCollector", &["Id", "Name"], MSO_HANDLES),
    element("SystemCollector/BufferSize", VALUE, MSO_HANDLES),
    element("SystemCollector/Buffers", VALUE, MSO_HANDLES),
    element("SystemCollector/StackCaching", CACHING, MSO_HANDLES),
    element("Profiles/EventCollector", &["Id", "Name"], MSO_HANDLES),
    element("EventCollector/BufferSize", VALUE, MSO_HANDLES),
    element("EventCollector/Buffers", VALUE, MSO_HANDLES),
    element("EventCollector/StackCaching", CACHING, MSO_HANDLES),
    element("Profiles/HeapEventCollector", &["Id", "Name"], MSO_HEAP),
    element("HeapEventCollector/BufferSize", VALUE, MSO_HEAP),
    element("HeapEventCollector/Buffers", VALUE, MSO_HEAP),
    Known {
        since: 19559,
        ..element("HeapEventCollector/StackCaching", CACHING, "MSO, Heap.19559.wprp")
    },
    element("Profiles/SystemProvider", &["Id"], MSO_HANDLES),
    element("SystemProvider/Keywords", &[], MSO_HANDLES),
    element("SystemProvider/Stacks", &[], MSO_HANDLES),
    element("Keywords/Keyword", VALUE, MSO_HANDLES),
    element("Stacks/Stack", VALUE, MSO_HANDLES),
    element("Profiles/EventProvider", EVENT_PROVIDER, MSO_HANDLES),
    element("EventProvider/Keywords", &[], MSO_HANDLES),
    element("EventProvider/CaptureStateOnSave", &[], MSO_CLR),
    element("CaptureStateOnSave/Keyword", VALUE, MSO_CLR),
    element("Profiles/HeapEventProvider", &["Id"], MSO_HEAP),
    element("HeapEventProvider/HeapProcessIds", &[], MSO_HEAP),
    element("HeapProcessIds/HeapProcessId", VALUE, MSO_HEAP),
    element("Profiles/Profile", PROFILE, MSO_HANDLES),
    element("Profile/Collectors", &[], MSO_HANDLES),
    element("Collectors/SystemCollectorId", VALUE, MSO_HANDLES),
    element("SystemCollectorId/SystemProviderId", VALUE, MSO_HANDLES),
    element("Collectors/EventCollectorId", VALUE, MSO_HANDLES),
    element("EventCollectorId/EventProviders", &[], MSO_HANDLES),
    element("EventProviders/EventProviderId", VALUE, MSO_HANDLES),
    element("Collectors/HeapEventCollectorId", VALUE, MSO_HEAP),
    element("HeapEventCollectorId/HeapEventProviders", &[], MSO_HEAP),
    element("HeapEventProviders/HeapEventProviderId", VALUE, MSO_HEAP),
    element("WindowsPerformanceRecorder/TraceMergeProperties", &[], MSO_HANDLES),
    element("TraceMergeProperties/TraceMergeProperty", &["Id", "Name"], MSO_HANDLES),
    element("TraceMergeProperty/DeletePreMergedTraceFiles", VALUE, MSO_HANDLES),
    element("TraceMergeProperty/FileCompression", VALUE, MSO_HANDLES),
    element("TraceMergeProperty/CustomEvents", &[], MSO_HANDLES),
    element("CustomEvents/CustomEvent", VALUE, MSO_HANDLES),
];

static KEYWORDS: [Known; 9] = [
    known("SystemProvider/ProcessThread", MSO_HANDLES),
    known("SystemProvider/Loader", MSO_HANDLES),
    known("SystemProvider/Handle", MSO_HANDLES),
    known("SystemProvider/Object", ETW_ANALYZER),
    known("SystemProvider/VAMap", MSO_HEAP),
    known("SystemProvider/VirtualAllocation", MSO_HEAP),
    Known {
        since: 18315,
        ..known("8c416c79-d49b-4f01-a467-e56d3aa8234c/0x30000000000", MSO_HANDLES)
    },
    known("DotNetProvider/0x20098", MSO_CLR),
    known("DotNetProvider/0x20118", MSO_CLR),
];

static STACKS: [Known; 13] = [
    known("HandleCreate", MSO_HANDLES),
    known("HandleClose", ETW_ANALYZER),
    known("HandleDuplicate", MSO_HANDLES),
    known("ObjectCreate", ETW_ANALYZER),
    known("ObjectDelete", ETW_ANALYZER),
    known("ObjectReference", ETW_ANALYZER),
    known("MapFile", LEARN),
    known("UnMapFile", LEARN),
    known("VirtualAllocation", LEARN),
    known("VirtualFree", LEARN),
    known("HeapAllocation", LEARN),
    known("HeapReallocation", LEARN),
    known("HeapCreate", LEARN),
];

/// Fails unless the WPR of Windows 10 accepts the name.
fn taken<'a>(list: &'a [Known], name: &str) -> &'a Known {
    let known = list.iter().find(|known| known.name == name);
    let known = known.unwrap_or_else(|| panic!("no profile that is known has {name}"));
    let Known { since, source, .. } = known;
    assert!(*since <= LAST_WINDOWS_10, "{name} needs WPR 10.0.{since} ({source})");
    known
}

/// Checks everything in `parent` against the lists; `provider` is the provider whose keywords it contains.
fn check(parent: &Element, provider: &str) {
    for child in &parent.children {
        let known = taken(&ELEMENTS, &format!("{}/{}", parent.name, child.name));
        for (attribute, _) in &child.attributes {
            assert!(known.attributes.contains(&attribute.as_str()), "{attribute} of {child:?}");
        }
        match child.name.as_str() {
            "Keyword" => {
                taken(&KEYWORDS, &format!("{provider}/{}", child.attribute("Value")));
            }
            "Stack" => {
                taken(&STACKS, child.attribute("Value"));
            }
            "SystemProvider" => check(child, "SystemProvider"),
            "EventProvider" => check(child, child.attribute("Name")),
            _ => check(child, provider),
        }
    }
}

#[test]
fn the_wpr_of_windows_10_takes_every_profile() {
    for choice in 0_u8..1 << 7 {
        let is_set = |bit: u8| choice & (1 << bit) != 0;
        let events = Events {
            references: is_set(0),
            mappings: is_set(1),
            virtual_alloc: is_set(2),
            drop_close_stacks: is_set(3),
        };
        let selection = ProviderSelection {
            heap_pids: Vec::from_iter(is_set(4).then_some(4711)),
            gdi_user: is_set(5),
            dot_net: is_set(6),
        };
        check(&profile_with(events, &selection), "");
    }
}
