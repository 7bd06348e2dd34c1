package ytstream;

import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.FlatMapGroupsInPandasWithState;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.StructType;
import scala.runtime.AbstractPartialFunction;

/**
 * The schema of a state of Python whose JSON has no upper-case letter.
 *
 * <p>Spark 4.2 sends a worker the schema as JSON, and the worker reads it in lower case (worker_util.py, Conf.get): an
 * array's elementType becomes elementtype, which Spark does not know. An escape in JSON outlives that.
 */
public final class StateSchema extends StructType {
  private StateSchema(StructType schema) {
    super(schema.fields());
  }

  /** Gives each state of Python in a plan such a schema. */
  public static LogicalPlan inPlan(LogicalPlan plan) {
    return (LogicalPlan) plan.transform(new Replace());
  }

  public String json() {
    String text = super.json();
    StringBuilder escaped = new StringBuilder();
    for (int at = 0; at < text.length(); at++) {
      char letter = text.charAt(at);
      if (letter == '\\') { // an escape already, of two characters or of six
        int end = text.charAt(at + 1) == 'u' ? at + 6 : at + 2;
        escaped.append(text, at, end);
        at = end - 1;
      } else if (letter > '~' || letter >= 'A' && letter <= 'Z') {
        escaped.append(String.format("\\u%04x", new Object[] {new Integer(letter)}));
      } else {
        escaped.append(letter);
      }
    }
    return escaped.toString();
  }

  private static final class Replace extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      return node instanceof FlatMapGroupsInPandasWithState;
    }

    public Object applyOrElse(Object node, scala.Function1 otherwise) {
      if (!isDefinedAt(node)) return otherwise.apply(node);
      FlatMapGroupsInPandasWithState state = (FlatMapGroupsInPandasWithState) node;
      return state.copy(
          renumbered((PythonUDF) state.functionExpr()),
          state.groupingAttributes(),
          state.outputAttrs(),
          new StateSchema(state.stateType()),
          state.outputMode(),
          state.timeout(),
          state.child());
    }

    /** The schemas are equal, and Spark keeps a node that is equal to the new one (TreeNode.transformDown). */
    private static PythonUDF renumbered(PythonUDF function) {
      return function.copy(
          function.name(),
          function.func(),
          function.dataType(),
          function.children(),
          function.evalType(),
          function.udfDeterministic(),
          NamedExpression.newExprId());
    }
  }
}
