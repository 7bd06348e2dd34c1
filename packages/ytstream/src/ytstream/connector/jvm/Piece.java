package ytstream;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.array.ByteArrayMethods;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;

/** Some rows of a task, in one array, and the distinct keys of theirs that go into one request. */
final class Piece {
  private static final int SLOTS = 1 << 14;
  private static final int SEED = 42;

  /** In `key`: a row without a key, and one whose key the cache knows to be missing. */
  static final int NO_KEY = -1;
  static final int MISSING = -2;
  private static final int FIRST_KNOWN = -3;

  /** How many rows it has, and their bytes. */
  int count;
  int size;
  /** By row: which key of the request it has; NO_KEY, MISSING, or FIRST_KNOWN minus where its row is in `known`. */
  int[] key = new int[1024];
  /** How many keys there are. */
  int keys;
  /** What the request took and brings. */
  Ask ask;
  long bytes;

  /** Rows of the table that the cache had, behind eight bytes. */
  byte[] known = new byte[8];
  private int knownSize = 8;

  private byte[] rows = new byte[1 << 16];
  private int[] starts = new int[1025];
  /** Slot of a hash table -> the number of a key, from 1. */
  private final int[] slots = new int[SLOTS];
  /** Where keys begin and end in the encoder's buffer. */
  private int[] begins = new int[1024];
  private int[] ends = new int[1024];

  void clear() {
    count = size = keys = 0;
    knownSize = 8;
    ask = null;
    Arrays.fill(slots, 0);
  }

  /** Copy a row. */
  void add(UnsafeRow row) {
    if (count == key.length) {
      key = Arrays.copyOf(key, 2 * count);
      starts = Arrays.copyOf(starts, 2 * count + 1);
    }
    int length = row.getSizeInBytes();
    if (length > rows.length - size) rows = Arrays.copyOf(rows, Math.max(Math.addExact(size, length), (int) Math.min(Integer.MAX_VALUE - 16, 2L * rows.length)));
    Platform.copyMemory(row.getBaseObject(), row.getBaseOffset(), rows, Platform.BYTE_ARRAY_OFFSET + size, length);
    starts[count] = size;
    size += length;
    starts[count + 1] = size;
    key[count++] = NO_KEY;
  }

  /** Let a row be the one of that number. */
  void point(UnsafeRow row, int number) {
    row.pointTo(rows, Platform.BYTE_ARRAY_OFFSET + starts[number], starts[number + 1] - starts[number]);
  }

  static int hash(byte[] buffer, int begin, int end) {
    return Murmur3_x86_32.hashUnsafeBytes(buffer, Platform.BYTE_ARRAY_OFFSET + begin, end - begin, SEED);
  }

  /** The table is known not to have the key of the last row. */
  void isKnownToMiss() {
    key[count - 1] = MISSING;
  }

  /** The last row has this row of the table. */
  void isKnown(byte[] bytes, int begin, int length) {
    if (length > known.length - knownSize) {
      known = Arrays.copyOf(known, (int) Math.min(Integer.MAX_VALUE - 16, Math.max(Math.addExact(knownSize, length), 2L * known.length)));
    }
    System.arraycopy(bytes, begin, known, knownSize, length);
    key[count - 1] = FIRST_KNOWN - knownSize;
    knownSize += length;
  }

  /** Return where the row of a table is that the cache had; -1 if there is none. */
  static int knownAt(int key) {
    return key <= FIRST_KNOWN ? FIRST_KNOWN - key : -1;
  }

  /** The bytes that it holds, those of known rows too. */
  int held() {
    return size + knownSize;
  }

  /** Where a key of the request begins and ends in it. */
  int begin(int number) {
    return begins[number];
  }

  int end(int number) {
    return ends[number];
  }

  /** Give the last row the key that the encoder has last, unless the key is known: then return false. */
  boolean isNew(byte[] buffer, int begin, int end, int hash) {
    int slot = hash & SLOTS - 1;
    for (; slots[slot] > 0; slot = slot + 1 & SLOTS - 1) {
      int known = slots[slot] - 1;
      if (isSame(buffer, begin, end, known)) {
        key[count - 1] = known;
        return false;
      }
    }
    if (keys == begins.length) {
      begins = Arrays.copyOf(begins, 2 * keys);
      ends = Arrays.copyOf(ends, 2 * keys);
    }
    begins[keys] = begin;
    ends[keys] = end;
    key[count - 1] = keys++;
    slots[slot] = keys;
    return true;
  }

  private boolean isSame(byte[] buffer, int begin, int end, int known) {
    long base = Platform.BYTE_ARRAY_OFFSET;
    int length = end - begin;
    return ends[known] - begins[known] == length
        && ByteArrayMethods.arrayEquals(buffer, base + begins[known], buffer, base + begin, length);
  }
}
