package ytstream;

import java.util.List;

/** YTsaurus' wire format of rowsets (yt/yt/client/table_client/wire_protocol.h). */
final class Wire {
  static final int NULL = 2;
  static final int INT64 = 3;
  static final int UINT64 = 4;
  static final int DOUBLE = 5;
  static final int BOOLEAN = 6;
  static final int STRING = 16;
  static final int ANY = 17;
  static final int COMPOSITE = 18;

  /** In the header of a value: the table adds it to what it has (wire_protocol.h, EUnversionedValueFlags). */
  static final long AGGREGATE = 1L << 24;

  private Wire() {}

  /** The eight bytes in front of a value: the column's id, the type, flags, and the length of bytes. */
  static long header(int id, int type, int length) {
    return id | (long) type << 16 | (long) length << 32;
  }

  static int id(long header) {
    return (int) header & 0xffff;
  }

  static int type(long header) {
    return (int) (header >>> 16) & 0xff;
  }

  static int length(long header) {
    return (int) (header >>> 32);
  }

  /** How many bytes follow the header. */
  static int size(int type, int length) {
    if (type == NULL) return 0;
    return type >= STRING ? aligned(length) : 8;
  }

  static int aligned(int length) {
    return (length + 7) & ~7;
  }

  /** The attachments of a message as one array: a row may begin in one and end in the next. */
  static byte[] joined(List parts) {
    if (parts.size() == 1) return (byte[]) parts.get(0);
    long size = 0;
    for (Object part : parts) size += ((byte[]) part).length;
    byte[] all = new byte[Math.toIntExact(size)];
    int at = 0;
    for (Object part : parts) {
      byte[] bytes = (byte[]) part;
      System.arraycopy(bytes, 0, all, at, bytes.length);
      at += bytes.length;
    }
    return all;
  }
}
