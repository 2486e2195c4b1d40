//! Joins that would not fit into memory are refused: when both sides are known, and before anything is
//! made of them.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, OnceLock},
};

use handlescope_model::guard::lock;
use polars::prelude::{
    DataFrame, DataType, Expr, IntoLazy, JoinArgs, JoinType, PlSmallStr, PolarsResult, col, len,
    polars_bail,
};
use polars_plan::{
    plans::{AExpr, FunctionIR, IR, expr_ir::ExprIR, node_to_expr},
    prelude::{Arena, Node},
};

/// Values that a join may have, rows times columns: 2 GiB of numbers.
const MOST_VALUES: u64 = 1 << 28;

/// A join that was refused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TooLarge {
    /// Rows that it would have.
    pub(super) rows: f64,
    /// Rows that it may have.
    pub(super) most: u64,
}

/// Where the first join that is refused is kept.
pub(super) type Refused = Arc<OnceLock<TooLarge>>;

/// Makes every join of a plan look at its sides before it is carried out.
pub(super) fn limit_joins(
    root: Node,
    plans: &mut Arena<IR>,
    expressions: &Arena<AExpr>,
    refused: &Refused,
) {
    let (mut waiting, mut seen) = (vec![root], HashSet::new());
    while let Some(node) = waiting.pop() {
        if !seen.insert(node) {
            continue;
        }
        let plan = plans.get(node);
        plan.copy_inputs(&mut waiting);
        let IR::Join { input_left, input_right, .. } = plan else { continue };
        let Some(join) = Join::of(plan, expressions, refused).map(Arc::new) else { continue };
        let sides = [(0, *input_left), (1, *input_right)];
        let [left, right] = sides.map(|(side, input)| plans.add(look(side, input, &join)));
        if let IR::Join { input_left, input_right, .. } = plans.get_mut(node) {
            (*input_left, *input_right) = (left, right);
        }
    }
}

/// A step of a plan that lets one side of a join pass, unless the join is too large.
fn look(side: usize, input: Node, join: &Arc<Join>) -> IR {
    let join = Arc::clone(join);
    let function = FunctionIR::Opaque {
        function: Arc::new(move |rows: DataFrame| join.pass(side, rows)),
        schema: None,
        predicate_pd: false,
        projection_pd: false,
        streamable: false,
        fmt_str: PlSmallStr::from_static("limit"),
    };
    IR::MapFunction { input, function }
}

/// A join of a plan.
struct Join {
    /// What has to be equal on each side; of none, every row meets every other.
    keys: [Vec<Expr>; 2],
    /// How many rows of it are wanted.
    wanted: u64,
    /// How many it may have.
    most: u64,
    sides: Mutex<[Option<DataFrame>; 2]>,
    refused: Refused,
}

impl Join {
    /// `None` when it has no more rows than one of its sides.
    fn of(plan: &IR, expressions: &Arena<AExpr>, refused: &Refused) -> Option<Join> {
        let IR::Join { left_on, right_on, options, schema, .. } = plan else { return None };
        if matches!(options.args.how, JoinType::Semi | JoinType::Anti) {
            return None;
        }
        let is_equal = options.options.is_none();
        let keys = [left_on, right_on].map(|keys: &Vec<ExprIR>| {
            let keys = keys.iter().filter(|_| is_equal);
            keys.map(|key| node_to_expr(key.node(), expressions)).collect()
        });
        let slice = options.args.slice.filter(|_| is_equal);
        Some(Join {
            keys,
            wanted: slice.map_or(u64::MAX, |(_, rows)| rows as u64),
            most: MOST_VALUES / schema.len().max(1) as u64,
            sides: Mutex::default(),
            refused: Arc::clone(refused),
        })
    }

    /// Whichever side comes second finds out how large the join is.
    fn pass(&self, side: usize, rows: DataFrame) -> PolarsResult<DataFrame> {
        let both = {
            let mut sides = lock(&self.sides);
            if let Some(place) = sides.get_mut(side) {
                *place = Some(rows.clone());
            }
            match &mut *sides {
                [left @ Some(_), right @ Some(_)] => left.take().zip(right.take()),
                _ => None,
            }
        };
        if let Some((left, right)) = both {
            self.check(left, right)?;
        }
        Ok(rows)
    }

    fn check(&self, left: DataFrame, right: DataFrame) -> PolarsResult<()> {
        let pairs = left.height() as f64 * right.height() as f64;
        let [left_keys, _] = &self.keys;
        // Few pairs need no count; of a product more cannot be numbered than a u32 can.
        if pairs <= self.most as f64
            || (left_keys.is_empty() && pairs <= f64::from(u32::MAX) && self.wanted <= self.most)
        {
            return Ok(());
        }
        let rows = if left_keys.is_empty() { pairs } else { self.matches(left, right)? };
        if rows > self.most as f64 {
            let _ = self.refused.set(TooLarge { rows, most: self.most });
            polars_bail!(ComputeError: "the join is too large");
        }
        Ok(())
    }

    /// How many rows a join of equal keys has; with the rows that match nothing, at most.
    fn matches(&self, left: DataFrame, right: DataFrame) -> PolarsResult<f64> {
        let alone = (left.height() + right.height()) as f64;
        let [left_keys, right_keys] = &self.keys;
        let names: Vec<String> = (0..left_keys.len()).map(|key| format!("key{key}")).collect();
        let columns: Vec<Expr> = names.iter().map(col).collect();
        let counted = |rows: DataFrame, keys: &[Expr], count: &str| {
            let keys = keys.iter().zip(&names).map(|(key, name)| key.clone().alias(name));
            let keys = rows.lazy().select(keys.collect::<Vec<_>>()).drop_nulls(None);
            keys.group_by(columns.clone()).agg([len().cast(DataType::Float64).alias(count)])
        };
        let (left, right) = (counted(left, left_keys, "left"), counted(right, right_keys, "right"));
        let both =
            left.join(right, columns.clone(), columns.clone(), JoinArgs::new(JoinType::Inner));
        let sum = both.select([(col("left") * col("right")).sum()]).collect()?;
        let matched = sum.column("left")?.f64()?.get(0).unwrap_or_default();
        Ok(matched + alone)
    }
}
