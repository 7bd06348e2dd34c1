package ytstream;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.types.UTF8String;
import tech.ytsaurus.core.tables.ColumnValueType;
import tech.ytsaurus.spyt.serializers.InternalRowDeserializer;

/**
 * A row as it came over the wire. {@code read} notes where each value is; a value is decoded when Spark asks for it, so
 * a column that a query does not use costs nothing more. One object serves all rows of a task: Spark copies what it
 * keeps, as it does with the rows of its own projections (UnsafeProjection).
 */
final class WireRow extends GenericInternalRow {
  private final Columns columns;
  private final int[] at;
  private final byte[] types;
  private final int[] lengths;
  private byte[] bytes;
  private ByteBuffer wire;
  private int[] ordinals;
  private int position;

  WireRow(Columns columns) {
    super(0);
    this.columns = columns;
    at = new int[columns.count];
    types = new byte[columns.count];
    lengths = new int[columns.count];
  }

  /** Go to the beginning of a rowset; return how many rows it has. */
  int open(byte[] rowset, int[] ordinals) {
    bytes = rowset;
    wire = ByteBuffer.wrap(rowset).order(ByteOrder.LITTLE_ENDIAN);
    this.ordinals = ordinals;
    position = 8;
    return Math.toIntExact(wire.getLong(0));
  }

  /** Return where each row begins; -1 for a row that is missing. */
  int[] offsets(int rows) {
    int[] found = new int[rows];
    int next = position;
    for (int row = 0; row < rows; row++) {
      long values = wire.getLong(next);
      found[row] = values < 0 ? -1 : next;
      next = end(next);
    }
    return found;
  }

  /** Return where the row ends that begins there. */
  int end(int offset) {
    long values = wire.getLong(offset);
    int next = offset + 8;
    for (long value = 0; value < values; value++) {
      long header = wire.getLong(next);
      next += 8 + Wire.size(Wire.type(header), Wire.length(header));
    }
    return next;
  }

  /** Go to the row that begins there. */
  void seek(int offset) {
    position = offset;
    read();
  }

  /** Go to the next row. */
  void read() {
    long values = wire.getLong(position);
    if (values < 0) throw new IllegalStateException("a queue has no row where one was asked for");
    int next = position + 8;
    Arrays.fill(types, (byte) Wire.NULL);
    for (long value = 0; value < values; value++) {
      long header = wire.getLong(next);
      next += 8;
      int type = Wire.type(header);
      int length = Wire.length(header);
      int id = Wire.id(header);
      int ordinal = id < ordinals.length ? ordinals[id] : -1;
      if (ordinal >= 0) {
        at[ordinal] = next;
        types[ordinal] = (byte) type;
        lengths[ordinal] = length;
      }
      next += Wire.size(type, length);
    }
    position = next;
  }

  public int numFields() {
    return columns.count;
  }

  public boolean isNullAt(int i) {
    return types[i] == Wire.NULL;
  }

  public long getLong(int i) {
    return isInteger(i) ? wire.getLong(at[i]) : ((Number) converted(i)).longValue();
  }

  public int getInt(int i) {
    return isInteger(i) ? (int) wire.getLong(at[i]) : ((Number) converted(i)).intValue();
  }

  public short getShort(int i) {
    return isInteger(i) ? (short) wire.getLong(at[i]) : ((Number) converted(i)).shortValue();
  }

  public byte getByte(int i) {
    return isInteger(i) ? (byte) wire.getLong(at[i]) : ((Number) converted(i)).byteValue();
  }

  public float getFloat(int i) {
    return types[i] == Wire.DOUBLE ? (float) wire.getDouble(at[i]) : ((Number) converted(i)).floatValue();
  }

  public double getDouble(int i) {
    return types[i] == Wire.DOUBLE ? wire.getDouble(at[i]) : ((Number) converted(i)).doubleValue();
  }

  public boolean getBoolean(int i) {
    return types[i] == Wire.BOOLEAN ? bytes[at[i]] != 0 : ((Boolean) converted(i)).booleanValue();
  }

  public UTF8String getUTF8String(int i) {
    if (types[i] == Wire.NULL) return null;
    if (types[i] == Wire.STRING && columns.kinds[i] == Kind.STRING) {
      return UTF8String.fromBytes(bytes, at[i], lengths[i]);
    }
    return (UTF8String) converted(i);
  }

  public byte[] getBinary(int i) {
    if (types[i] == Wire.NULL) return null;
    if (types[i] >= Wire.STRING && columns.kinds[i] == Kind.BINARY) return bytes(i);
    return (byte[]) converted(i);
  }

  public Object get(int i, DataType type) {
    return genericGet(i);
  }

  /** Return the value as Spark boxes it. Arrays, maps and all else that has no method above goes this way. */
  public Object genericGet(int i) {
    if (types[i] == Wire.NULL) return null;
    switch (columns.kinds[i]) {
      case Kind.LONG: return Long.valueOf(getLong(i));
      case Kind.INT: return Integer.valueOf(getInt(i));
      case Kind.SHORT: return Short.valueOf(getShort(i));
      case Kind.BYTE: return Byte.valueOf(getByte(i));
      case Kind.FLOAT: return Float.valueOf(getFloat(i));
      case Kind.DOUBLE: return Double.valueOf(getDouble(i));
      case Kind.BOOLEAN: return Boolean.valueOf(getBoolean(i));
      case Kind.STRING: return getUTF8String(i);
      case Kind.BINARY: return getBinary(i);
      default: return converted(i);
    }
  }

  private boolean isInteger(int i) {
    return types[i] == Wire.INT64 || types[i] == Wire.UINT64;
  }

  private byte[] bytes(int i) {
    return Arrays.copyOfRange(bytes, at[i], at[i] + lengths[i]);
  }

  /** Return the value as SPYT converts it, which refuses one that does not fit the column. */
  private Object converted(int i) {
    InternalRowDeserializer into = columns.deserializer(i);
    into.onNewRow(1);
    into.setId(0);
    into.setType(ColumnValueType.fromValue(types[i]));
    switch (types[i]) {
      case Wire.INT64: case Wire.UINT64: into.onInteger(wire.getLong(at[i])); break;
      case Wire.DOUBLE: into.onDouble(wire.getDouble(at[i])); break;
      case Wire.BOOLEAN: into.onBoolean(bytes[at[i]] != 0); break;
      case Wire.STRING: case Wire.ANY: case Wire.COMPOSITE: into.onBytes(bytes(i)); break;
      default: into.onEntity();
    }
    return ((InternalRow) into.onCompleteRow()).get(0, columns.types[i]);
  }
}
