package ytstream;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;
import scala.collection.Seq;
import scala.collection.immutable.Nil$;
import tech.ytsaurus.client.DefaultSerializationResolver;
import tech.ytsaurus.client.rows.UnversionedValue;
import tech.ytsaurus.core.tables.ColumnSchema;
import tech.ytsaurus.core.tables.ColumnValueType;
import tech.ytsaurus.core.tables.TableSchema;
import tech.ytsaurus.spyt.serializers.DynTableRowConverter;
import tech.ytsaurus.typeinfo.TypeName;

/** Turns Spark's rows into a rowset on the wire, one after the other, into one buffer. */
final class Encoder {
  /** Names the tablet of a row (YTsaurus, "Ordered dynamic tables"; tablet_helpers.cpp, GetOrderedTabletForRow). */
  private static final String TABLET_INDEX = "$tablet_index";

  private final int width;
  /** How many of the columns are the key. */
  private int keys;
  /** By column of the table: which one of the row it is, how Spark holds it, and its type on the wire. */
  private final int[] at;
  private final int[] kinds;
  private final int[] wires;
  /** The bits that a number of the column has: Spark's numbers have a sign, and unsigned ones have not. */
  private final long[] masks;
  private final DataType[] types;
  private final ColumnSchema[] columns;
  private final DynTableRowConverter[] converters;
  /** How many tablets the rows go to in turn; 0: the cluster chooses. */
  private final int tablets;
  private int tablet;
  private byte[] bytes = new byte[1 << 16];
  private ByteBuffer wire = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  private int size = 8;
  private int rows;

  /** {@code tablets} of a table without a key: row by row they take turns, from {@code first} on. */
  Encoder(TableSchema table, StructType schema, int tablets, int first) {
    this.tablets = tablets;
    tablet = tablets > 0 ? first % tablets : 0;
    width = table.getColumnsCount();
    at = new int[width];
    kinds = new int[width];
    wires = new int[width];
    masks = new long[width];
    types = new DataType[width];
    columns = new ColumnSchema[width];
    converters = new DynTableRowConverter[width];
    for (int i = 0; i < width; i++) {
      ColumnSchema column = table.getColumnSchema(i);
      columns[i] = column;
      if (column.getSortOrder() != null) keys++;
      at[i] = schema.fieldIndex(column.getName());
      types[i] = schema.apply(at[i]).dataType();
      wires[i] = column.getType().getValue();
      kinds[i] = fitting(Kind.of(types[i]), wires[i]);
      masks[i] = isUnsigned(column) ? mask(kinds[i]) : -1;
      if (kinds[i] == Kind.OTHER) converters[i] = converter(column, schema.apply(at[i]));
    }
  }

  /** Return the kind if its values go to the wire as they are, else OTHER: then SPYT converts or refuses them. */
  private static int fitting(int kind, int wire) {
    boolean fits;
    switch (kind) {
      case Kind.LONG: case Kind.INT: case Kind.SHORT: case Kind.BYTE: fits = wire == Wire.INT64 || wire == Wire.UINT64; break;
      case Kind.FLOAT: case Kind.DOUBLE: fits = wire == Wire.DOUBLE; break;
      case Kind.BOOLEAN: fits = wire == Wire.BOOLEAN; break;
      case Kind.STRING: case Kind.BINARY: fits = wire == Wire.STRING; break;
      default: fits = false;
    }
    return fits ? kind : Kind.OTHER;
  }

  private static boolean isUnsigned(ColumnSchema column) {
    tech.ytsaurus.typeinfo.TiType type = column.getTypeV3();
    if (type.isOptional()) type = type.asOptional().getItem();
    TypeName name = type.getTypeName();
    return name == TypeName.Uint8 || name == TypeName.Uint16 || name == TypeName.Uint32 || name == TypeName.Uint64;
  }

  private static long mask(int kind) {
    switch (kind) {
      case Kind.INT: return 0xffffffffL;
      case Kind.SHORT: return 0xffffL;
      case Kind.BYTE: return 0xffL;
      default: return -1;
    }
  }

  private static DynTableRowConverter converter(ColumnSchema column, StructField field) {
    TableSchema table = new TableSchema.Builder().setStrict(true).setUniqueKeys(false).add(column).build();
    return new DynTableRowConverter(new StructType(new StructField[] {field}), table, true);
  }

  int rows() {
    return rows;
  }

  int size() {
    return size;
  }

  /** What is there so far; another array once there is more. */
  byte[] buffer() {
    return bytes;
  }

  /** Forget the last row, which began there. */
  void back(int mark) {
    size = mark;
    rows--;
  }

  /** Encode a row where the one before was; return the buffer, in which it begins at 8. */
  ByteBuffer alone(InternalRow row) {
    size = 8;
    rows = 0;
    add(row);
    return wire;
  }

  void add(InternalRow row) {
    add(row, width);
  }

  /** Encode the key of a row alone, as a delete names it. */
  void addKey(InternalRow row) {
    add(row, keys);
  }

  private void add(InternalRow row, int count) {
    room(8);
    wire.putLong(size, tablets > 0 ? count + 1 : count);
    size += 8;
    for (int i = 0; i < count; i++) {
      int from = at[i];
      if (row.isNullAt(from)) {
        header(i, Wire.NULL, 0);
        continue;
      }
      switch (kinds[i]) {
        case Kind.LONG: number(i, row.getLong(from)); break;
        case Kind.INT: number(i, row.getInt(from)); break;
        case Kind.SHORT: number(i, row.getShort(from)); break;
        case Kind.BYTE: number(i, row.getByte(from)); break;
        case Kind.FLOAT: bits(i, Wire.DOUBLE, Double.doubleToRawLongBits(row.getFloat(from))); break;
        case Kind.DOUBLE: bits(i, Wire.DOUBLE, Double.doubleToRawLongBits(row.getDouble(from))); break;
        case Kind.BOOLEAN: bits(i, Wire.BOOLEAN, row.getBoolean(from) ? 1 : 0); break;
        case Kind.STRING: text(i, row.getUTF8String(from)); break;
        case Kind.BINARY: bytes(i, Wire.STRING, row.getBinary(from)); break;
        default: converted(i, row.get(from, types[i]));
      }
    }
    if (tablets > 0) {
      bits(width, Wire.INT64, tablet);
      if (++tablet == tablets) tablet = 0;
    }
    rows++;
  }

  /** Return the columns of the rows on the wire. */
  static TableSchema written(TableSchema table, int tablets) {
    return tablets > 0 ? table.toBuilder().addValue(TABLET_INDEX, ColumnValueType.INT64).build() : table;
  }

  /** Return the rowset, and begin the next one. */
  byte[] finish() {
    wire.putLong(0, rows);
    byte[] done = Arrays.copyOf(bytes, size);
    size = 8;
    rows = 0;
    return done;
  }

  private void number(int column, long value) {
    bits(column, wires[column], value & masks[column]);
  }

  private void bits(int column, int type, long value) {
    header(column, type, 0);
    room(8);
    wire.putLong(size, value);
    size += 8;
  }

  private void text(int column, UTF8String value) {
    int length = value.numBytes();
    begin(column, Wire.STRING, length);
    value.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET + size);
    size += Wire.aligned(length);
  }

  private void bytes(int column, int type, byte[] value) {
    begin(column, type, value.length);
    System.arraycopy(value, 0, bytes, size, value.length);
    size += Wire.aligned(value.length);
  }

  /** Write the header of a value of that length, and zeros where the last bytes of its padding are. */
  private void begin(int column, int type, int length) {
    header(column, type, length);
    int padded = Wire.aligned(length);
    room(padded);
    if (padded > 0) wire.putLong(size + padded - 8, 0);
  }

  private void header(int column, int type, int length) {
    room(8);
    wire.putLong(size, Wire.header(column, type, length));
    size += 8;
  }

  /** Write a value of another type as SPYT's writer converts it (YtDynamicTableWriter, ModifyRowsRequest). */
  private void converted(int column, Object value) {
    Seq made = (Seq) converters[column].convertRow(Nil$.MODULE$.$colon$colon(value));
    ColumnValueType type = columns[column].getType();
    Object found = made.apply(0) == null
        ? null : UnversionedValue.convertValueTo(made.apply(0), type, DefaultSerializationResolver.getInstance());
    if (found == null) header(column, Wire.NULL, 0);
    else if (found instanceof byte[]) bytes(column, type.getValue(), (byte[]) found);
    else if (found instanceof Double) bits(column, type.getValue(), Double.doubleToRawLongBits(((Double) found).doubleValue()));
    else if (found instanceof Boolean) bits(column, type.getValue(), ((Boolean) found).booleanValue() ? 1 : 0);
    else bits(column, type.getValue(), ((Number) found).longValue());
  }

  private void room(int more) {
    long wanted = (long) size + more;
    if (wanted <= bytes.length) return;
    if (wanted > Integer.MAX_VALUE - 16) throw new IllegalStateException("one request would be larger than 2 GiB");
    bytes = Arrays.copyOf(bytes, (int) Math.min(Integer.MAX_VALUE - 16, Math.max(wanted, 2L * bytes.length)));
    wire = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }
}
