package ytstream;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistry;
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult;
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult$TypeCheckFailure;
import org.apache.spark.sql.catalyst.analysis.TypeCheckResult$TypeCheckSuccess$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnaryExpression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.Seq;
import scala.runtime.AbstractFunction1;

/**
 * The JSON text of a column of YSON, as an expression of Spark: json_of(column) of Python and of SQL. Or what is wrong with
 * its bytes. The code that Spark generates calls {@code of} or {@code problem} with the bytes of the row.
 */
public final class JsonOf extends UnaryExpression implements Serializable {
  private static final String NAME = "json_of";
  /** SPYT's type of an `any` column; not a class to import, as in Kind. */
  private static final String YSON = "org.apache.spark.sql.spyt.types.YsonType";

  private final Expression yson;
  private final boolean isProblem;

  public JsonOf(Expression yson) {
    this(yson, false);
  }

  public JsonOf(Expression yson, boolean isProblem) {
    this.yson = yson;
    this.isProblem = isProblem;
  }

  /** Return the JSON text of a value. Raises IllegalArgumentException for bytes that are not YSON. */
  public static UTF8String of(Object yson) {
    try {
      return new YsonToJson((byte[]) yson).text();
    } catch (IllegalArgumentException error) {
      throw new IllegalArgumentException(NAME + ": " + error.getMessage());
    }
  }

  /** Return why a dynamic table takes no such value; empty where it does. */
  public static UTF8String problem(Object yson) {
    return UTF8String.fromString(new YsonToJson((byte[]) yson).problem());
  }

  /** Let SQL call the function in the session that this registry is of. */
  public static void register(FunctionRegistry registry) {
    registry.createOrReplaceTempFunction(NAME, new AbstractFunction1() {
      public Object apply(Object arguments) {
        Seq given = (Seq) arguments;
        if (given.size() != 1) throw new IllegalArgumentException(NAME + "() takes one column, not " + given.size());
        return new JsonOf((Expression) given.apply(0));
      }
    }, "java_udf");
  }

  public Object nullSafeEval(Object value) {
    return isProblem ? problem(value) : of(value);
  }

  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    return defineCodeGen(context, code, new AbstractFunction1() {
      public Object apply(Object value) {
        return "ytstream.JsonOf." + (isProblem ? "problem(" : "of(") + value + ")";
      }
    });
  }

  // -- what Spark asks of an expression

  public TypeCheckResult checkInputDataTypes() {
    DataType type = yson.dataType();
    if (type instanceof BinaryType || type.getClass().getName().equals(YSON)) {
      return TypeCheckResult$TypeCheckSuccess$.MODULE$;
    }
    return new TypeCheckResult$TypeCheckFailure(NAME + "() takes an `any` column, not " + type.simpleString());
  }

  public Expression child() {
    return yson;
  }

  public DataType dataType() {
    return DataTypes.StringType;
  }

  public String prettyName() {
    return isProblem ? "yson_problem" : NAME;
  }

  public TreeNode withNewChildInternal(TreeNode child) {
    return new JsonOf((Expression) child, isProblem);
  }

  public Object productElement(int n) {
    return n == 0 ? (Object) yson : Boolean.valueOf(isProblem);
  }

  public int productArity() {
    return 2;
  }

  public boolean canEqual(Object other) {
    return other instanceof JsonOf;
  }

  public boolean equals(Object other) {
    return other instanceof JsonOf && yson.equals(((JsonOf) other).yson) && isProblem == ((JsonOf) other).isProblem;
  }
}
