package ytstream;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.UserDefinedType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import tech.ytsaurus.core.tables.ColumnSchema;
import tech.ytsaurus.typeinfo.TiType;
import tech.ytsaurus.typeinfo.TypeName;

/**
 * Which values of a row a key column can have. Null would find the row of a null key, which is meant only in an output of
 * the job. One value that the column cannot
 * have would fail the whole request (YTsaurus, unversioned_row.cpp, ValidateValueType), so its row is not asked for.
 */
final class KeyRule {
  private final int at;
  private final int kind;
  private final boolean isUtf8;
  /** The largest value of an unsigned column whose numbers have a sign in Spark; -1 for all others. */
  private final long most;
  private final boolean hasNulls;

  KeyRule(ColumnSchema column, int at, DataType type, boolean hasNulls) {
    this.hasNulls = hasNulls;
    this.at = at;
    kind = Kind.of(type);
    TiType of = column.getTypeV3();
    if (of.isOptional()) of = of.asOptional().getItem();
    isUtf8 = of.getTypeName() == TypeName.Utf8;
    boolean isSigned = !(type instanceof UserDefinedType) && !type.getClass().getName().contains("UInt64Type");
    most = isSigned ? most(of.getTypeName()) : -1;
  }

  private static long most(TypeName type) {
    if (type == TypeName.Uint8) return 0xffL;
    if (type == TypeName.Uint16) return 0xffffL;
    if (type == TypeName.Uint32) return 0xffffffffL;
    return type == TypeName.Uint64 ? Long.MAX_VALUE : -1;
  }

  boolean allows(InternalRow row) {
    if (row.isNullAt(at)) return hasNulls;
    switch (kind) {
      case Kind.DOUBLE: return !Double.isNaN(row.getDouble(at));
      case Kind.FLOAT: return !Float.isNaN(row.getFloat(at));
      case Kind.STRING: return !isUtf8 || isUtf8(row.getUTF8String(at));
      case Kind.LONG: return isThere(row.getLong(at));
      case Kind.INT: return isThere(row.getInt(at));
      case Kind.SHORT: return isThere(row.getShort(at));
      case Kind.BYTE: return isThere(row.getByte(at));
      default: return true;
    }
  }

  private boolean isThere(long value) {
    return most < 0 || 0 <= value && value <= most;
  }

  /** As Unicode defines it: no letter in more bytes than it needs, no surrogates, nothing above U+10FFFF. */
  private static boolean isUtf8(UTF8String text) {
    int size = text.numBytes();
    for (int i = 0; i < size; ) {
      int first = at(text, i++);
      if (first < 0x80) continue;
      int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
      if (first < 0xc2 || first > 0xf4 || i + more > size) return false;
      int second = at(text, i);
      int low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
      int high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
      if (second < low || second > high) return false;
      for (int end = i++ + more; i < end; i++) if ((at(text, i) & 0xc0) != 0x80) return false;
    }
    return true;
  }

  private static int at(UTF8String text, int i) {
    return Platform.getByte(text.getBaseObject(), text.getBaseOffset() + i) & 0xff;
  }
}
