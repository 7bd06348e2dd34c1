package ytstream;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;

/** The period of a row of an archive, and why it may have none: schema/periods.py has the same rules in Python. */
final class Period {
  /** Why a row is skipped. */
  static final String[] REASONS = {"no-time", "too-old", "too-new", "late"};
  private static final long MICROSECONDS = 1000000;
  private static final long DAY = 24 * 3600;

  private final int by;
  private final boolean isDay;
  private final long seconds;
  private long begin;

  Period(DataType type, int by, long seconds) {
    this.by = by;
    this.seconds = seconds;
    isDay = Kind.of(type) == Kind.INT;
  }

  /** When the period of the last row begins, in seconds since 1970. */
  long begin() {
    return begin;
  }

  /** Return the number of the reason to skip a row, -1 without one. */
  int skipped(InternalRow row, long oldest, long newest, long refused) {
    if (row.isNullAt(by)) return 0;
    long second = isDay ? row.getInt(by) * DAY : Math.floorDiv(row.getLong(by), MICROSECONDS);
    begin = Math.floorDiv(second, seconds) * seconds;
    if (begin < oldest) return 1;
    if (begin > newest) return 2;
    return begin + seconds <= refused ? 3 : -1;
  }
}
