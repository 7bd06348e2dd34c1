package ytstream;

import java.util.ArrayList;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/**
 * Puts ExpiryExec on top of each dropDuplicatesWithinWatermark() of a stream. A rule for columnar plans, since Spark applies
 * these last: the operator has its state and its watermarks by then (IncrementalExecution.preparations,
 * QueryExecution.preparations).
 */
public final class ExpiryRule extends ColumnarRule {
  /** Spark 4.1 has moved the class into another package. */
  private static final String DEDUPLICATION = ".StreamingDeduplicateWithinWatermarkExec";

  /** Let queries of a session plan so that start from now on: each copies the session, and then asks for the rules. */
  public static synchronized void install(SparkSession session, SparkSessionExtensions extensions) {
    ArrayList rules = Lookup.list(extensions.buildColumnarRules(session));
    for (Object rule : rules) if (rule instanceof ExpiryRule) return;
    extensions.injectColumnar(new Builder());
  }

  private static final class Builder extends AbstractFunction1 {
    public Object apply(Object session) {
      return new ExpiryRule();
    }
  }

  public Rule preColumnarTransitions() {
    return new Wrap();
  }

  private static final class Wrap extends Rule {
    public TreeNode apply(TreeNode plan) {
      return ((SparkPlan) plan).transformUp(new Each());
    }
  }

  private static final class Each extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      return node.getClass().getName().endsWith(DEDUPLICATION);
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      return isDefinedAt(node) ? new ExpiryExec((SparkPlan) node) : otherwise.apply(node);
    }
  }
}
