package ytstream;

import java.io.Serializable;
import java.math.BigInteger;

/** What a task adds to totals: of each sum the most that it adds to any key, up and down. */
final class Added implements Serializable {
  private static final BigInteger MOST = BigInteger.valueOf(Long.MAX_VALUE);
  private static final BigInteger LEAST = BigInteger.valueOf(Long.MIN_VALUE);
  private static final BigInteger MOST_UNSIGNED = BigInteger.ONE.shiftLeft(64).subtract(BigInteger.ONE);

  private final String[] names;
  private final BigInteger[] up;
  private final BigInteger[] down;
  private final boolean[] isUnsigned;

  Added(String[] names) {
    this.names = names;
    up = new BigInteger[names.length];
    down = new BigInteger[names.length];
    isUnsigned = new boolean[names.length];
    for (int i = 0; i < names.length; i++) up[i] = down[i] = BigInteger.ZERO;
  }

  void signed(int column, long most, long least) {
    up[column] = BigInteger.valueOf(most);
    down[column] = BigInteger.valueOf(least);
  }

  void unsigned(int column, long most) {
    isUnsigned[column] = true;
    up[column] = new BigInteger(Long.toUnsignedString(most));
  }

  /** Add what another task of the batch adds. Raises ArithmeticException where both may be beyond the column. */
  void and(Added other) {
    for (int i = 0; i < names.length; i++) {
      isUnsigned[i] |= other.isUnsigned[i];
      up[i] = up[i].add(other.up[i]);
      down[i] = down[i].add(other.down[i]);
      BigInteger most = isUnsigned[i] ? MOST_UNSIGNED : MOST;
      if (up[i].compareTo(most) > 0 || down[i].compareTo(LEAST) < 0) throw Totals.tooLarge(names[i]);
    }
  }
}
