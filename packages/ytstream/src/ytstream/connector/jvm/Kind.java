package ytstream;

import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.types.UserDefinedType;

/** How Spark holds a value of a type inside of a row; OTHER is left to SPYT's converters. */
final class Kind {
  static final int OTHER = 0;
  static final int LONG = 1;
  static final int INT = 2;
  static final int SHORT = 3;
  static final int BYTE = 4;
  static final int FLOAT = 5;
  static final int DOUBLE = 6;
  static final int BOOLEAN = 7;
  static final int STRING = 8;
  static final int BINARY = 9;

  private Kind() {}

  static int of(DataType type) {
    if (type instanceof UserDefinedType) {
      int kind = of(((UserDefinedType) type).sqlType());
      // The other types of SPYT's (YsonType) are converted value by value.
      return kind == LONG || kind == INT ? kind : OTHER;
    }
    if (type instanceof LongType || type instanceof TimestampType || type instanceof TimestampNTZType) return LONG;
    if (type instanceof IntegerType || type instanceof DateType) return INT;
    if (type instanceof ShortType) return SHORT;
    if (type instanceof ByteType) return BYTE;
    if (type instanceof FloatType) return FLOAT;
    if (type instanceof DoubleType) return DOUBLE;
    if (type instanceof BooleanType) return BOOLEAN;
    if (type instanceof StringType) return STRING;
    if (type instanceof BinaryType) return BINARY;
    // Not a class to import: SPYT without its extended types has none (UInt64Type).
    return type.getClass().getName().startsWith("org.apache.spark.sql.spyt.types.UInt64Type") ? LONG : OTHER;
  }
}
