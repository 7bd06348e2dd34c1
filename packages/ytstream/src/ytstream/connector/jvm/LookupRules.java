package ytstream;

import java.util.ArrayList;
import java.util.Collections;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.AttributeSet;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.runtime.AbstractPartialFunction;

/**
 * Two optimizations of a plan with lookups. A filter that needs no column of the lookup goes below it, and columns of the
 * table that nobody reads are not asked for. Spark does either for the operators of its own lists only.
 */
public final class LookupRules extends Rule {
  public TreeNode apply(TreeNode plan) {
    return ((LogicalPlan) plan).transform(new Each());
  }

  private static final class Each extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      return node instanceof Filter || node instanceof Project;
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (node instanceof Filter) return pushed((Filter) node);
      if (node instanceof Project) return pruned((Project) node);
      return otherwise.apply(node);
    }
  }

  private static LogicalPlan pushed(Filter filter) {
    if (!(filter.child() instanceof LookupNode)) return filter;
    LookupNode lookup = (LookupNode) filter.child();
    ArrayList parts = new ArrayList();
    split(filter.condition(), parts);
    Expression below = null;
    Expression above = null;
    for (Object part : parts) {
      Expression one = (Expression) part;
      if (one.deterministic() && one.references().subsetOf(lookup.child.outputSet())) below = and(below, one);
      else above = and(above, one);
    }
    if (below == null) return filter;
    LogicalPlan moved = new LookupNode(lookup.keys, lookup.spec, new Filter(below, lookup.child));
    return above == null ? moved : new Filter(above, moved);
  }

  private static void split(Expression condition, ArrayList into) {
    if (condition instanceof And) {
      split(((And) condition).left(), into);
      split(((And) condition).right(), into);
    } else {
      into.add(condition);
    }
  }

  private static Expression and(Expression one, Expression other) {
    return one == null ? other : new And(one, other);
  }

  private static LogicalPlan pruned(Project project) {
    LogicalPlan below = project.child();
    AttributeSet read = project.references();
    Filter filter = null;
    if (below instanceof Filter) {
      filter = (Filter) below;
      read = read.$plus$plus(filter.references());
      below = filter.child();
    }
    if (!(below instanceof LookupNode)) return project;
    LookupNode lookup = (LookupNode) below;
    LookupSpec less = lookup.spec.narrowed(read);
    if (less == lookup.spec) return project;
    LogicalPlan made = less == null ? lookup.child : new LookupNode(lookup.keys, less, lookup.child);
    if (filter != null) made = new Filter(filter.condition(), made);
    return new Project(project.projectList(), made);
  }
}
