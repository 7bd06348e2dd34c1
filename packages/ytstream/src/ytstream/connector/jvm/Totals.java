package ytstream;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import tech.ytsaurus.core.tables.ColumnSchema;
import tech.ytsaurus.core.tables.TableSchema;

/**
 * Combines the rows of one task by their key, as the table's columns say, so that the task writes each key once. The
 * transaction combines what several tasks write of a key in the same way (YTsaurus, row_merger.cpp, TUnversionedRowMerger).
 */
final class Totals {
  private static final int SUM = 0;
  private static final int MIN = 1;
  private static final int MAX = 2;
  private static final int FIRST = 3;
  private static final long TO_MIX = 0x9e3779b97f4a7c15L;

  private final int keys;
  /** Columns that are not keys. */
  private final int values;
  private final int[] functions;
  private final String[] names;
  /** Which columns are sums of whole numbers: those may become too large. */
  private final boolean[] isWhole;
  private int rows;
  /** An open hash table: the number of a row + 1, or 0. Its length is a power of two. */
  private int[] slots = new int[1 << 12];
  private int[] hashes = new int[1 << 11];
  /** Where the key of a row begins in {@code words}, and where that of the next one. */
  private int[] starts = new int[(1 << 11) + 1];
  /** Keys as they are on the wire, where all has a multiple of eight bytes. */
  private long[] words = new long[1 << 13];
  /** By row and column: the type on the wire, 0 for null; the number; the bytes, where columns have some. */
  private byte[] types;
  private long[] numbers;
  private byte[][] texts;
  /** By row and column: how often a sum has left 64 bits, up or down. Null as long as none has. */
  private int[] wraps;
  /** The row that is written next. */
  private int next;

  Totals(TableSchema table) {
    int count = table.getColumnsCount();
    int first = 0;
    while (first < count && table.getColumnSchema(first).getSortOrder() != null) first++;
    keys = first;
    values = count - first;
    functions = new int[values];
    names = new String[values];
    isWhole = new boolean[values];
    for (int i = 0; i < values; i++) {
      ColumnSchema column = table.getColumnSchema(keys + i);
      names[i] = column.getName();
      functions[i] = function(column.getAggregate());
      isWhole[i] = functions[i] == SUM && column.getType().getValue() != Wire.DOUBLE;
      if (column.getType().getValue() >= Wire.STRING) texts = new byte[hashes.length * values][];
    }
    types = new byte[hashes.length * values];
    numbers = new long[hashes.length * values];
  }

  /** Return whether the table adds up what is written. */
  static boolean has(TableSchema table) {
    for (int i = 0; i < table.getColumnsCount(); i++) {
      if (table.getColumnSchema(i).getAggregate() != null) return true;
    }
    return false;
  }

  private static int function(String name) {
    if ("sum".equals(name)) return SUM;
    if ("min".equals(name)) return MIN;
    if ("max".equals(name)) return MAX;
    if ("first".equals(name)) return FIRST;
    throw new IllegalStateException("no aggregate function that is known here: " + name);
  }

  /** Add the row that begins there in a rowset. */
  void add(ByteBuffer wire, int begin) {
    int at = begin + 8;
    for (int i = 0; i < keys; i++) at += size(wire.getLong(at));
    int row = row(wire, begin + 8, at);
    for (int i = 0; i < values; i++) {
      long header = wire.getLong(at);
      if (Wire.type(header) != Wire.NULL) put(row * values + i, i, header, wire, at + 8);
      at += size(header);
    }
  }

  private static int size(long header) {
    return 8 + Wire.size(Wire.type(header), Wire.length(header));
  }

  /** Return the number of the row with that key, a new one if there is none. */
  private int row(ByteBuffer wire, int begin, int end) {
    int hash = hash(wire, begin, end);
    int slot = hash & slots.length - 1;
    while (slots[slot] != 0) {
      int row = slots[slot] - 1;
      if (hashes[row] == hash && isOf(row, wire, begin, end)) return row;
      slot = slot + 1 & slots.length - 1;
    }
    if (rows == hashes.length) {
      grow();
      return row(wire, begin, end);
    }
    slots[slot] = rows + 1;
    hashes[rows] = hash;
    keep(wire, begin, end);
    return rows++;
  }

  private static int hash(ByteBuffer wire, int begin, int end) {
    long found = 0;
    for (int at = begin; at < end; at += 8) {
      found = (found ^ wire.getLong(at)) * TO_MIX;
      found ^= found >>> 32;
    }
    return (int) found;
  }

  private boolean isOf(int row, ByteBuffer wire, int begin, int end) {
    int word = starts[row];
    if (starts[row + 1] - word != end - begin >> 3) return false;
    for (int at = begin; at < end; at += 8) {
      if (words[word++] != wire.getLong(at)) return false;
    }
    return true;
  }

  private void keep(ByteBuffer wire, int begin, int end) {
    int word = starts[rows];
    int after = Math.addExact(word, end - begin >> 3);
    if (after > words.length) words = Arrays.copyOf(words, Math.max(after, larger(words.length)));
    for (int at = begin; at < end; at += 8) words[word++] = wire.getLong(at);
    starts[rows + 1] = after;
  }

  private void grow() {
    int most = larger(hashes.length);
    hashes = Arrays.copyOf(hashes, most);
    starts = Arrays.copyOf(starts, most + 1);
    int cells = Math.multiplyExact(most, values);
    types = Arrays.copyOf(types, cells);
    numbers = Arrays.copyOf(numbers, cells);
    if (texts != null) texts = (byte[][]) Arrays.copyOf(texts, cells);
    if (wraps != null) wraps = Arrays.copyOf(wraps, cells);
    slots = new int[most * 2];
    for (int row = 0; row < rows; row++) {
      int slot = hashes[row] & slots.length - 1;
      while (slots[slot] != 0) slot = slot + 1 & slots.length - 1;
      slots[slot] = row + 1;
    }
  }

  private static int larger(int length) {
    if (length > 1 << 28) throw new IllegalStateException("one task has too many keys: lower max_rows_per_partition");
    return length * 2;
  }

  private void put(int cell, int column, long header, ByteBuffer wire, int at) {
    boolean isNew = types[cell] == 0;
    if (!isNew && functions[column] == FIRST) return;
    byte type = (byte) Wire.type(header);
    if (type >= Wire.STRING) {
      byte[] text = new byte[Wire.length(header)];
      for (int i = 0; i < text.length; i++) text[i] = wire.get(at + i);
      if (isNew || isBetter(column, order(text, texts[cell]))) texts[cell] = text;
    } else {
      long number = wire.getLong(at);
      numbers[cell] = isNew ? number : combined(cell, column, type, number);
    }
    types[cell] = type;
  }

  private long combined(int cell, int column, int type, long added) {
    long old = numbers[cell];
    if (functions[column] == SUM) return sum(cell, type, old, added);
    int order;
    if (type == Wire.DOUBLE) order = Double.compare(Double.longBitsToDouble(added), Double.longBitsToDouble(old));
    else order = type == Wire.UINT64 ? Long.compareUnsigned(added, old) : Long.compare(added, old);
    return isBetter(column, order) ? added : old;
  }

  private boolean isBetter(int column, int order) {
    return functions[column] == MIN ? order < 0 : order > 0;
  }

  /**
   * A sum wraps as the table's does (YTsaurus, udf/sum.c), so what is sent is right wherever the total fits. Whether it does,
   * the driver finds out: see Sums.
   */
  private long sum(int cell, int type, long old, long added) {
    if (type == Wire.DOUBLE) {
      return Double.doubleToRawLongBits(Double.longBitsToDouble(old) + Double.longBitsToDouble(added));
    }
    long sum = old + added;
    boolean isOver = type == Wire.UINT64
        ? Long.compareUnsigned(sum, old) < 0 : ((old ^ sum) & (added ^ sum)) < 0;
    if (isOver) {
      if (wraps == null) wraps = new int[types.length];
      wraps[cell] += type == Wire.UINT64 || added > 0 ? 1 : -1;
    }
    return sum;
  }

  /** Texts compare by their bytes, as numbers without a sign. */
  private static int order(byte[] one, byte[] other) {
    int most = Math.min(one.length, other.length);
    for (int i = 0; i < most; i++) {
      if (one[i] != other[i]) return (one[i] & 0xff) - (other[i] & 0xff);
    }
    return one.length - other.length;
  }

  /** Return what the task adds to sums of whole numbers. It names each key to which it adds more than {@code few}. */
  Added added(long few) {
    int count = 0;
    for (int i = 0; i < values; i++) if (isWhole[i]) count++;
    int[] columns = new int[count];
    String[] found = new String[count];
    for (int i = 0, at = 0; i < values; i++) {
      if (!isWhole[i]) continue;
      columns[at] = i;
      found[at++] = names[i];
    }
    Added added = new Added(found);
    for (int row = 0; count > 0 && row < rows; row++) {
      if (isNamed(row, columns, few)) name(row, columns, added);
      else for (int i = 0; i < count; i++) added.most(i, numbers[row * values + columns[i]]);
    }
    return added;
  }

  private boolean isNamed(int row, int[] columns, long few) {
    for (int i = 0; i < columns.length; i++) {
      int cell = row * values + columns[i];
      // An unsigned number with the highest bit is negative here, and far from few.
      if (numbers[cell] > few || numbers[cell] < -few || wraps != null && wraps[cell] != 0) return true;
    }
    return false;
  }

  private void name(int row, int[] columns, Added added) {
    ByteBuffer key = ByteBuffer.wrap(new byte[8 * (starts[row + 1] - starts[row])]).order(ByteOrder.LITTLE_ENDIAN);
    for (int word = starts[row]; word < starts[row + 1]; word++) key.putLong(words[word]);
    long[] sums = new long[columns.length];
    int[] beyond = new int[columns.length];
    for (int i = 0; i < columns.length; i++) {
      int cell = row * values + columns[i];
      sums[i] = numbers[cell];
      beyond[i] = wraps == null ? 0 : wraps[cell];
      // As a signed number has them, which BigInteger reads.
      if (types[cell] == Wire.UINT64 && sums[i] < 0) beyond[i]++;
    }
    added.name(key.array(), sums, beyond);
  }

  boolean hasNext() {
    return next < rows;
  }

  /** Return the next rows as a rowset, at most so many of them, and about so many bytes. */
  Rowset request(String path, TableSchema table, int most, int size) {
    int first = next;
    int bytes = 8;
    while (next < rows && next - first < most && bytes < size) bytes = Math.addExact(bytes, length(next++));
    ByteBuffer wire = ByteBuffer.wrap(new byte[bytes]).order(ByteOrder.LITTLE_ENDIAN);
    wire.putLong(next - first);
    for (int row = first; row < next; row++) write(row, wire);
    return new Rowset(path, table, next - first, wire.array());
  }

  private int length(int row) {
    int found = 8 + 8 * (starts[row + 1] - starts[row]);
    for (int i = 0; i < values; i++) {
      int cell = row * values + i;
      found += 8 + (types[cell] == 0 ? 0 : Wire.size(types[cell], types[cell] < Wire.STRING ? 0 : texts[cell].length));
    }
    return found;
  }

  private void write(int row, ByteBuffer wire) {
    wire.putLong(keys + values);
    for (int word = starts[row]; word < starts[row + 1]; word++) wire.putLong(words[word]);
    for (int i = 0; i < values; i++) {
      int cell = row * values + i;
      byte type = types[cell];
      if (type == 0) {
        wire.putLong(Wire.header(keys + i, Wire.NULL, 0) | Wire.AGGREGATE);
      } else if (type < Wire.STRING) {
        wire.putLong(Wire.header(keys + i, type, 0) | Wire.AGGREGATE).putLong(numbers[cell]);
      } else {
        byte[] text = texts[cell];
        wire.putLong(Wire.header(keys + i, type, text.length) | Wire.AGGREGATE).put(text);
        wire.position(wire.position() + Wire.aligned(text.length) - text.length);
      }
    }
  }
}
