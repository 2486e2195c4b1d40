//! Views: `SELECT`s in files, from this folder and from the user. Those of the user are added, or replace ours.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    path::Path,
    sync::{Arc, LazyLock, mpsc},
};

use handlescope_model::{Cancel, Table};
use polars::{
    prelude::{DataFrame, IntoLazy, PolarsResult, Schema},
    sql::{SQLContext, extract_table_identifiers},
};

use super::relations::{queried_by_name, table_name};
use super::{
    columns::{RelationColumn, specs},
    hex::with_literals,
    planner::{context, execute, with_stack},
    view_file::{ViewError, ViewFile},
};
use handlescope_query::QueryNames;
use handlescope_session::paths::has_extension;

/// The views in this folder.
static FILES: [(&str, &str); 6] = [
    ("acquisitions.sql", include_str!("views/acquisitions.sql")),
    ("leaks.sql", include_str!("views/leaks.sql")),
    ("handles.sql", include_str!("views/handles.sql")),
    ("open_handles.sql", include_str!("views/open_handles.sql")),
    ("allocations.sql", include_str!("views/allocations.sql")),
    ("provider_values.sql", include_str!("views/provider_values.sql")),
];

static BUILT_IN: LazyLock<Arc<Views>> = LazyLock::new(|| {
    Arc::new(
        planned_apart(built_in, &Cancel::default())
            .ok()
            .flatten()
            .and_then(Result::ok)
            .unwrap_or_default(),
    )
});

/// Plans views on their own thread. Polars may need much stack, and refuses to plan inside another runtime, such as
/// that of the server for agents. `None` if it panics.
fn planned_apart(
    files: impl FnOnce() -> Result<Vec<ViewFile>, ViewError> + Send + 'static,
    cancel: &Cancel,
) -> io::Result<Option<Result<Views, ViewError>>> {
    let cancel = cancel.clone();
    let thread = with_stack(move || files().and_then(|files| Views::planned(&files, &cancel)))?;
    Ok(thread.join().ok().flatten())
}

/// A view that a query may name, like a table.
#[derive(Debug, PartialEq, Eq)]
pub struct View {
    pub file: ViewFile,
    pub columns: Vec<RelationColumn>,
    /// The text with literals in the form polars reads.
    planned: String,
}

#[derive(Debug, Default)]
pub struct Views {
    /// The views, each after those it uses.
    planned: Vec<View>,
    /// Indexes of the views in display order.
    shown: Vec<usize>,
    /// Names of other views, which are not needed by the query.
    others: Vec<String>,
}

impl Views {
    /// The views of the program.
    pub fn built_in() -> &'static Arc<Views> {
        &BUILT_IN
    }

    /// Returns the views of the program and those in a folder.
    ///
    /// # Errors
    /// If one in the folder cannot be read or planned, or `cancel` is set.
    pub fn with(folder: Option<&Path>, cancel: &Cancel) -> Result<Arc<Views>, ViewError> {
        Self::among(folder, cancel, |files| (files, Vec::new()))
    }

    /// Returns the views that a query may name. Of those it does not need, only the names are known.
    ///
    /// # Errors
    /// If one in the folder cannot be read, one that the query needs cannot be planned, or `cancel` is set.
    pub fn from_query(
        folder: Option<&Path>,
        query: &str,
        cancel: &Cancel,
    ) -> Result<Arc<Views>, ViewError> {
        // Errors in the query are reported later.
        let named = extract_table_identifiers(query, false, true).unwrap_or_default();
        Self::among(folder, cancel, move |files| needed(files, &named))
    }

    /// Returns the views of the program or, if there is a folder, those chosen from both.
    fn among(
        folder: Option<&Path>,
        cancel: &Cancel,
        choose: impl FnOnce(Vec<ViewFile>) -> (Vec<ViewFile>, Vec<String>) + Send + 'static,
    ) -> Result<Arc<Views>, ViewError> {
        let Some(folder) = folder.map(Path::to_path_buf) else { return Ok(Arc::clone(&BUILT_IN)) };
        let unread = |source| ViewError::Unread { path: folder.clone(), source };
        let (read, (names, others)) = (folder.clone(), mpsc::channel());
        let chosen = move || {
            let (files, others) = choose(files(&read)?);
            // Its receiver outlives the thread.
            let _ = names.send(others);
            Ok(files)
        };
        let views = planned_apart(chosen, cancel).map_err(unread)?;
        let views = views.unwrap_or_else(|| Err(unread(io::Error::other("polars panicked"))))?;
        Ok(Arc::new(Views { others: others.recv().unwrap_or_default(), ..views }))
    }

    /// Returns the views in display order, those of the program first.
    pub fn all(&self) -> impl Iterator<Item = &View> {
        self.shown
            .iter()
            .filter_map(|index| self.planned.get(*index))
            .filter(|view| !view.is_hidden())
    }

    pub fn named(&self, name: &str) -> Option<&View> {
        self.planned.iter().find(|view| view.file.name.eq_ignore_ascii_case(name))
    }

    /// Returns the texts that define a view: its own, and those of hidden views it uses.
    pub fn texts(&self, view: &View) -> impl Iterator<Item = &str> {
        self.planned
            .iter()
            .rev()
            .filter(|known| {
                let name = &known.file.name;
                *name == view.file.name || (known.is_hidden() && view.file.uses.contains(name))
            })
            .map(|view| view.file.text.as_str())
    }

    /// Plans views, which determines the types of their columns.
    fn planned(files: &[ViewFile], cancel: &Cancel) -> Result<Views, ViewError> {
        let order = sorted(files)?;
        let Some(first) = files.first() else { return Ok(Views::default()) };
        let context = context(&Arc::default());
        let mut context = context.map_err(|error| first.wrong(&error, &QueryNames::default()))?;
        let shown = vec![0; files.len()];
        let mut views = Views { planned: Vec::new(), shown, others: Vec::new() };
        for index in order {
            // Planning a long chain takes long.
            cancel.check()?;
            let Some((file, slot)) = files.get(index).zip(views.shown.get_mut(index)) else {
                continue;
            };
            *slot = views.planned.len();
            let known: Vec<RelationColumn> =
                file.uses.iter().flat_map(|name| columns_of(name, &views.planned)).collect();
            let text = with_literals(&file.text, &known);
            let text = text.unwrap_or_else(|| file.text.clone());
            let planned = execute(&mut context, &text).and_then(|mut frame| {
                let schema = frame.collect_schema()?;
                context.register(&file.name, frame);
                Ok(schema)
            });
            let schema = planned.map_err(|error| {
                let tables = queried_by_name().map(|table| -> &str { table.name() });
                let names = QueryNames {
                    tables: tables.chain(files.iter().map(|file| file.name.as_str())).collect(),
                    columns: known.iter().map(|column| &*column.name).collect(),
                    query: &file.text,
                };
                file.wrong(&error, &names)
            })?;
            views.planned.push(View::new(file, text, &schema, &known)?);
        }
        Ok(views)
    }

    /// Returns the user's views among those a query uses, each after those it uses itself.
    pub fn of_user(&self, named: &[String]) -> Vec<&View> {
        let used = self.used(named);
        self.planned
            .iter()
            .filter(|view| view.file.is_of_user && used.contains(&view.file.name))
            .collect()
    }

    /// Returns the names in a query, and those used by the views named.
    fn used(&self, named: &[String]) -> HashSet<String> {
        all_used(named, |name| Some(&self.named(name)?.file.uses))
    }

    /// Registers the views for queries. Only the named ones, and those they use, get plans.
    pub fn register(&self, context: &mut SQLContext, named: &[String]) -> PolarsResult<()> {
        let used = self.used(named);
        for view in &self.planned {
            let frame = if used.contains(&view.file.name) {
                execute(context, &view.planned)?
            } else if view.is_hidden() {
                continue;
            } else {
                // Only error messages list its name.
                DataFrame::empty().lazy()
            };
            context.register(&view.file.name, frame);
        }
        for name in &self.others {
            context.register(name, DataFrame::empty().lazy());
        }
        Ok(())
    }
}

/// Returns the files of the program and of views that a query needs, and the names of the others.
fn needed(files: Vec<ViewFile>, named: &[String]) -> (Vec<ViewFile>, Vec<String>) {
    let uses: HashMap<&str, &[String]> =
        files.iter().map(|file| (file.name.as_str(), file.uses.as_slice())).collect();
    let mut needed = all_used(named, |name| uses.get(name).copied());
    let is_built_in = |file: &ViewFile| !file.is_of_user;
    // A view of the program may use one that replaces another of the program.
    for file in files.iter().filter(|file| is_built_in(file)) {
        needed.extend(file.uses.iter().map(|name| name.to_lowercase()));
    }
    let (needed, others): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| is_built_in(file) || needed.contains(&file.name));
    (needed, others.into_iter().map(|file| file.name).collect())
}

/// Returns names in lower case, and those that they use, directly or through others.
fn all_used<'u>(named: &[String], uses: impl Fn(&str) -> Option<&'u [String]>) -> HashSet<String> {
    let mut used = HashSet::new();
    let mut open: Vec<String> = named.iter().map(|name| name.to_lowercase()).collect();
    while let Some(name) = open.pop() {
        let uses = uses(&name).unwrap_or_default();
        if used.insert(name) {
            open.extend(uses.iter().map(|name| name.to_lowercase()));
        }
    }
    used
}

impl View {
    /// Whether it exists only for other views.
    fn is_hidden(&self) -> bool {
        self.file.name.starts_with('_')
    }

    /// Builds a view. A column without a description in the file takes that of its source column.
    fn new(
        file: &ViewFile,
        planned: String,
        schema: &Schema,
        known: &[RelationColumn],
    ) -> Result<View, ViewError> {
        if let Some(doc) = file.docs.iter().find(|doc| !schema.contains(&doc.name)) {
            let problem = format!("the query has no column '{}'", doc.name);
            return Err(file.wrong_in(doc.line, problem));
        }
        let columns = schema.iter().map(|(name, dtype)| {
            let doc = file.docs.iter().find(|doc| doc.name == *name);
            let mut known = known.iter().filter(|known| *name == known.name);
            match (doc, known.find(|known| known.dtype == *dtype)) {
                (None, Some(known)) => known.clone(),
                (doc, _) => RelationColumn {
                    name: name.to_string().into(),
                    dtype: dtype.clone(),
                    nullable: doc.is_none_or(|doc| doc.nullable),
                    unit: doc.map_or_else(String::new, |doc| doc.unit.clone()).into(),
                    doc: doc.map_or_else(String::new, |doc| doc.meaning.clone()).into(),
                },
            }
        });
        Ok(View { file: file.clone(), columns: columns.collect(), planned })
    }
}

fn built_in() -> Result<Vec<ViewFile>, ViewError> {
    FILES.iter().map(|(name, text)| ViewFile::parse(Path::new(name), text)).collect()
}

/// Returns the files of the program, where files of the same name in a folder replace them, and the folder's other
/// files.
fn files(folder: &Path) -> Result<Vec<ViewFile>, ViewError> {
    let entries = fs::read_dir(folder)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|source| ViewError::Unread { path: folder.to_path_buf(), source })?;
    let mut paths: Vec<_> = entries
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| has_extension(path, &["sql"]))
        .collect();
    paths.sort();
    let mut files = built_in()?;
    for path in paths {
        let file = ViewFile::read(&path)?;
        match files.iter_mut().find(|known| known.name == file.name) {
            Some(known) => *known = file,
            None => files.push(file),
        }
    }
    Ok(files)
}

/// Returns the indexes of files, each after those it uses.
fn sorted(files: &[ViewFile]) -> Result<Vec<usize>, ViewError> {
    let indexes: HashMap<&str, usize> =
        files.iter().map(|file| file.name.as_str()).zip(0..).collect();
    let uses = |index: &usize| {
        let names = files.get(*index).map_or(&[][..], |file| &file.uses);
        names.iter().filter_map(|name| indexes.get(name.to_lowercase().as_str()).copied())
    };
    let (mut order, mut done) = (Vec::new(), HashSet::<usize>::new());
    let mut left: Vec<usize> = (0..files.len()).collect();
    while let Some(&first) = left.first() {
        let (ready, waiting): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|index| uses(index).all(|used| done.contains(&used)));
        if ready.is_empty() {
            // Every remaining file uses another remaining one, so this walk ends in the cycle.
            let step = |file: usize| uses(&file).find(|used| !done.contains(used)).unwrap_or(file);
            let index = (0..files.len()).fold(first, |index, _| step(index));
            let Some((file, used)) = files.get(index).zip(files.get(step(index))) else { break };
            let problem = format!("the view {} refers to itself", file.name);
            return Err(file.wrong_name(&used.name, problem));
        }
        done.extend(&ready);
        order.extend(ready);
        left = waiting;
    }
    Ok(order)
}

/// Returns the columns of a planned view or of a table.
fn columns_of(name: &str, planned: &[View]) -> Vec<RelationColumn> {
    if let Some(view) = planned.iter().find(|view| view.file.name.eq_ignore_ascii_case(name)) {
        return view.columns.clone();
    }
    let table = Table::queried().find(|table| table_name(*table).eq_ignore_ascii_case(name));
    table.into_iter().flat_map(specs).map(|spec| RelationColumn::new(&spec)).collect()
}
