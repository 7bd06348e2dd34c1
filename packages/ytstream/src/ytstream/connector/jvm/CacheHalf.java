package ytstream;

import java.util.Arrays;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.array.ByteArrayMethods;

/** Entries in one array, and a hash table of where they begin. It has no object for an entry. */
final class CacheHalf {
  /** In front of an entry's key and row: the hash, the table, and both lengths; -1 for a key without a row. */
  private static final int HEAD = 16;
  /** An entry takes at most this part of all. */
  private static final int LARGE = 8;
  /** And the hash table takes at most this one. */
  private static final int TABLE = 5;

  private final int most;
  private final int mostOfTable;
  private byte[] bytes = new byte[0];
  private int size;
  private int count;
  /** Where an entry begins, plus one. */
  private int[] slots = new int[16];

  CacheHalf(int bytes) {
    mostOfTable = bytes / TABLE;
    most = bytes - mostOfTable;
  }

  static int size(int key, int row) {
    return (int) Math.min(Integer.MAX_VALUE, (long) HEAD + key + row);
  }

  int size(int entry) {
    return size(number(entry + 8), Math.max(0, number(entry + 12)));
  }

  boolean isTooLarge(int entry) {
    return entry > most / LARGE;
  }

  boolean isFull(int entry) {
    boolean grows = 2 * (count + 1) > slots.length;
    return (long) size + entry > most || grows && 8L * slots.length > mostOfTable;
  }

  void clear() {
    size = count = 0;
    Arrays.fill(slots, 0);
  }

  /** Return where the entry of a key is; -1 if there is none. */
  int find(int table, int hash, byte[] keys, int begin, int end) {
    for (int slot = hash & slots.length - 1; slots[slot] > 0; slot = slot + 1 & slots.length - 1) {
      int entry = slots[slot] - 1;
      if (number(entry) == hash && number(entry + 4) == table && number(entry + 8) == end - begin
          && ByteArrayMethods.arrayEquals(keys, at(begin), bytes, at(entry + HEAD), end - begin)) return entry;
    }
    return -1;
  }

  /** Give the last row of a piece the row of an entry. */
  void copy(int entry, Piece piece) {
    int row = number(entry + 12);
    if (row < 0) piece.isKnownToMiss();
    else piece.isKnown(bytes, entry + HEAD + number(entry + 8), row);
  }

  void add(int table, int hash, byte[] keys, int begin, int end, byte[] rows, int first, int last) {
    int row = first < 0 ? 0 : last - first;
    int entry = room(size(end - begin, row), hash);
    put(entry, hash);
    put(entry + 4, table);
    put(entry + 8, end - begin);
    put(entry + 12, first < 0 ? -1 : row);
    System.arraycopy(keys, begin, bytes, entry + HEAD, end - begin);
    if (row > 0) System.arraycopy(rows, first, bytes, entry + HEAD + end - begin, row);
  }

  /** Take an entry of the other half. */
  void take(CacheHalf other, int entry) {
    int length = other.size(entry);
    int place = room(length, other.number(entry)); // it may be another array afterwards
    System.arraycopy(other.bytes, entry, bytes, place, length);
  }

  /** Return where an entry of that length may be written, and find it by its hash from now on. */
  private int room(int length, int hash) {
    int entry = size;
    // Of a half that is nearly full, no byte more than it may have.
    if (length > bytes.length - size) {
      bytes = Arrays.copyOf(bytes, (int) Math.min(most, Math.max(2L * bytes.length, (long) size + length)));
    }
    size += length;
    if (2 * ++count > slots.length) {
      int[] before = slots;
      slots = new int[2 * before.length];
      for (int i = 0; i < before.length; i++) if (before[i] > 0) point(before[i] - 1, number(before[i] - 1));
    }
    point(entry, hash);
    return entry;
  }

  private void point(int entry, int hash) {
    int slot = hash & slots.length - 1;
    while (slots[slot] > 0) slot = slot + 1 & slots.length - 1;
    slots[slot] = entry + 1;
  }

  private int number(int place) {
    return Platform.getInt(bytes, at(place));
  }

  private void put(int place, int value) {
    Platform.putInt(bytes, at(place), value);
  }

  private static long at(int place) {
    return Platform.BYTE_ARRAY_OFFSET + place;
  }
}
