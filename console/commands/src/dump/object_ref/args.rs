//! The arguments of `.dump ObjectRef`.

use super::of_fleet::FleetGroupsArgs;
use crate::shared::fields;
use handlescope_fleet::FleetChoice;
use handlescope_query::{
    AcquisitionCriteria, CountOrder, GroupCriteria, ProcessCriteria, StackTrims,
};
use handlescope_render::output::COLUMNS;
use handlescope_render::{self as render, ObjectRefStyle, OutputOptions};
use handlescope_session::settings::{DisplayArgs, StackDisplayArgs};
use handlescope_session::values::{ColumnChoice, RequestedFormat};

/// Arguments of `.dump ObjectRef`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObjectRefArgs {
    pub criteria: AcquisitionCriteria,
    pub display: DisplayArgs,
    /// `-csv`, with ETWAnalyzer's columns.
    pub formats: Vec<RequestedFormat>,
    /// A column, or a word for the order of `-ShowTotal` or `-GroupBy`.
    pub sort_by: Option<String>,
    /// `-NoCSVSeparator`: no `sep = ;` line at the start.
    pub no_csv_separator: bool,
    /// `-NoCmdLine`: an empty command line column in the CSV file.
    pub no_command_line: bool,
    /// What only a dataset has.
    pub of_fleet: FleetGroupsArgs,
}

fields!(ObjectRefArgs {
    criteria.stacks: StackDisplayArgs,
    criteria.groups: GroupCriteria,
    criteria.groups.trims: StackTrims,
    criteria.creator: ProcessCriteria,
    display: DisplayArgs,
    of_fleet.choice: FleetChoice,
});

impl ObjectRefArgs {
    /// Whether objects are listed, and not counted or grouped.
    pub fn lists_objects(&self) -> bool {
        self.criteria.groups.by.is_none() && self.criteria.count_by.is_none()
    }

    /// Returns the first option about groups, if the line does not ask for groups.
    pub fn option_without_groups(&self, output: &OutputOptions) -> Option<&'static str> {
        let groups = &self.criteria.groups;
        let options = [
            groups.min_count.map(|_| "-MinCount"),
            groups.depth.map(|_| "-Depth"),
            groups.rows.map(|_| "-Rows"),
            groups
                .trims
                .criterion()
                .filter(|_| self.criteria.suspect.is_none())
                .map(render::option),
            groups.buckets.map(|_| "-ShowTime"),
            (output.columns != ColumnChoice::Fitting).then_some(COLUMNS),
        ];
        options.into_iter().flatten().find(|_| groups.by.is_none())
    }

    /// Returns the order of totals; `None` if `-SortBy` names a column that they do not have.
    pub fn order(&self, output: &OutputOptions) -> Option<CountOrder> {
        match (&output.sort_by, self.criteria.count_by) {
            (Some(column), Some(by)) => CountOrder::by(column, by.title()),
            _ => Some(CountOrder::default()),
        }
    }

    /// Returns the style of the answer to these criteria.
    pub fn style<'a>(
        &self,
        criteria: &'a AcquisitionCriteria,
        text: &'a str,
    ) -> ObjectRefStyle<'a> {
        ObjectRefStyle {
            criteria,
            text,
            no_csv_separator: self.no_csv_separator,
            no_command_line: self.no_command_line,
        }
    }
}
