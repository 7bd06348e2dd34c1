package ytstream;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Writes one value of YSON, text or binary, as JSON in YTsaurus' format (core/json/json_writer.cpp): a value with attributes
 * is {"$attributes":{},"$value":...}, a key that begins with $ gets one $ more, and what is not a finite number is text
 * (stringify_nan_and_infinity). A string whose bytes are not UTF-8, for which YTsaurus has no form that can be told from a
 * text, is {"$bytes":"base64"}; such a key is "$bytes:base64".
 *
 * The grammar is that of core/yson/parser_detail.h. What is open is on a stack of its own, so that no value is too deep.
 */
final class YsonToJson {
  /** On the stack: what closes a list, a map and attributes, and a value behind attributes. */
  private static final byte LIST = ']';
  private static final byte MAP = '}';
  private static final byte ATTRIBUTES = '>';
  private static final byte VALUE = 'v';
  private static final byte[] HEX = ascii("0123456789abcdef");
  private static final int END = -1;
  /** Bytes of a broken value in a message. */
  private static final int SHOWN = 40;

  private final byte[] yson;
  private int at;
  private byte[] json;
  private int size;
  private byte[] open = new byte[16];
  private int depth;
  /** The string that was read last: bytes of {@code source}. */
  private byte[] source;
  private int from;
  private int to;

  YsonToJson(byte[] yson) {
    this.yson = yson;
    json = new byte[yson.length * 2 + 16];
  }

  /** Return why it is not a value of a dynamic table (client/table_client/unversioned_row.cpp, ValidateAnyValue). */
  String problem() {
    if (peek() == '<') return "attributes of the value itself";
    try {
      text();
      return "";
    } catch (IllegalArgumentException error) {
      return error.getMessage();
    }
  }

  /** Return the value as JSON. Raises IllegalArgumentException for what is not YSON. */
  UTF8String text() {
    boolean isValue = true;
    while (true) {
      isValue = isValue ? beginsMore() : continues();
      if (!isValue && depth == 0) break;
    }
    if (peek() != END) throw broken("bytes behind the value");
    return UTF8String.fromBytes(json, 0, size);
  }

  /** Read a value, or the beginning of one; return whether another value comes next. */
  private boolean beginsMore() {
    int next = peek();
    switch (next) {
      case '{': return opens("{", MAP);
      case '[': return opens("[", LIST);
      case '<':
        if (top() == VALUE) throw broken("attributes behind attributes");
        return opens("{\"$attributes\":{", ATTRIBUTES);
      default:
        scalar(next);
        return ended();
    }
  }

  private boolean opens(String text, byte close) {
    at++;
    put(text);
    if (depth == open.length) open = Arrays.copyOf(open, 2 * depth);
    open[depth++] = close;
    return continuesWith(peek());
  }

  /** Go on behind a value in a list, a map or attributes; return whether another value comes next. */
  private boolean continues() {
    int next = peek();
    if (next == ';') {
      at++;
      next = peek();
      return continuesWith(next);
    }
    if (next != top()) throw broken("neither ; nor " + (char) top());
    return continuesWith(next);
  }

  private boolean continuesWith(int next) {
    byte close = top();
    if (next == close) return closed(close);
    byte last = json[size - 1];
    if (last != '{' && last != '[') put(',');
    if (close != LIST) key(next);
    return true;
  }

  private boolean closed(byte close) {
    at++;
    if (close == ATTRIBUTES) {
      put("},\"$value\":");
      open[depth - 1] = VALUE;
      return true;
    }
    put(close);
    depth--;
    return ended();
  }

  /** A value has ended, and with it those behind attributes. Return false: no value comes next before a ; or an end. */
  private boolean ended() {
    while (top() == VALUE) {
      put('}');
      depth--;
    }
    return false;
  }

  private byte top() {
    if (depth == 0) return 0;
    return open[depth - 1];
  }

  private void key(int next) {
    if (next == '"' || next == 1 || isLetter(next)) string(next);
    else throw broken("no key");
    if (isUtf8()) {
      put('"');
      if (to > from && source[from] == '$') put('$');
      escaped();
    } else {
      put("\"$bytes:");
      base64();
    }
    put("\":");
    if (peek() != '=') throw broken("no = behind a key");
    at++;
  }

  private void scalar(int next) {
    switch (next) {
      case 2: at++; integer(zigzag(varint())); return;
      case 3: at++; number(Double.longBitsToDouble(eightBytes())); return;
      case 4: at++; put("false"); return;
      case 5: at++; put("true"); return;
      case 6: at++; put(Long.toUnsignedString(varint())); return;
      case '#': at++; put("null"); return;
      case '%': special(); return;
      case END: throw broken("the value ends too early");
      default:
    }
    if (next == '"' || next == 1 || isLetter(next)) {
      string(next);
      if (isUtf8()) {
        put('"');
        escaped();
        put('"');
      } else {
        put("{\"$bytes\":\"");
        base64();
        put("\"}");
      }
    } else if (next == '-' || next == '+' || isDigit(next)) {
      numeral();
    } else {
      throw broken("an unexpected byte");
    }
  }

  // -- numbers

  private void integer(long value) {
    put(Long.toString(value));
  }

  private void number(double value) {
    if (Double.isNaN(value)) put("\"nan\"");
    else if (Double.isInfinite(value)) put(value > 0 ? "\"inf\"" : "\"-inf\"");
    else put(Double.toString(value));
  }

  private void special() {
    at++;
    String word = word("+-");
    if (word.equals("true") || word.equals("false")) put(word);
    else if (word.equals("nan") || word.equals("inf") || word.equals("-inf")) put('"' + word + '"');
    else if (word.equals("+inf")) put("\"inf\"");
    else throw broken("an unknown word behind %");
  }

  private void numeral() {
    int begin = at;
    String word = word("+-.");
    try {
      if (word.endsWith("u")) {
        put(Long.toUnsignedString(Long.parseUnsignedLong(word.substring(0, word.length() - 1))));
      } else if (isDecimal(word)) {
        number(Double.parseDouble(word));
      } else {
        integer(Long.parseLong(word));
      }
    } catch (NumberFormatException error) {
      at = begin;
      throw broken("not a number");
    }
  }

  /** Java takes 1f, 0x1p3 and NaN for numbers as well, YSON digits, a point and an exponent alone. */
  private static boolean isDecimal(String word) {
    boolean isDecimal = false;
    for (int i = 0; i < word.length(); i++) {
      char c = word.charAt(i);
      if (c == '.' || c == 'e' || c == 'E') isDecimal = true;
      else if (!isDigit(c) && c != '-' && c != '+') throw new NumberFormatException();
    }
    return isDecimal;
  }

  /** Read letters, digits and some characters more. */
  private String word(String more) {
    int begin = at;
    while (at < yson.length && (isLetter(yson[at]) || isDigit(yson[at]) || more.indexOf((char) yson[at]) >= 0)) at++;
    return new String(yson, begin, at - begin, StandardCharsets.ISO_8859_1);
  }

  private long varint() {
    long value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      byte next = take();
      value |= (long) (next & 0x7f) << shift;
      if (next >= 0) return value;
    }
    throw broken("an integer of more than 64 bits");
  }

  private static long zigzag(long value) {
    return (value >>> 1) ^ -(value & 1);
  }

  private long eightBytes() {
    long value = 0;
    for (int shift = 0; shift < 64; shift += 8) value |= (take() & 0xffL) << shift;
    return value;
  }

  // -- strings

  /** Read a string: its bytes are then those of {@code source}, which is the value unless one is escaped. */
  private void string(int next) {
    source = yson;
    if (next == '"') {
      at++;
      quoted();
    } else if (next == 1) {
      at++;
      long length = zigzag(varint());
      if (length < 0 || length > yson.length - at) throw broken("a string that is longer than the value");
      from = at;
      to = at += (int) length;
    } else {
      from = at;
      while (at < yson.length && (isLetter(yson[at]) || isDigit(yson[at]) || "-.%".indexOf((char) yson[at]) >= 0)) at++;
      to = at;
    }
  }

  private void quoted() {
    from = at;
    while (at < yson.length && yson[at] != '"' && yson[at] != '\\') at++;
    if (at < yson.length && yson[at] == '\\') {
      unescaped();
    } else {
      to = at;
    }
    if (take() != '"') throw broken("a string that does not end");
  }

  /** Copy a string with escapes (util/string/escape.cpp, UnescapeC), from its beginning to the quote behind it. */
  private void unescaped() {
    byte[] bytes = new byte[yson.length - from];
    int count = at - from;
    System.arraycopy(yson, from, bytes, 0, count);
    while (at < yson.length && yson[at] != '"') {
      byte next = yson[at++];
      if (next == '\\') {
        byte[] meant = escape();
        System.arraycopy(meant, 0, bytes, count, meant.length);
        count += meant.length;
      } else {
        bytes[count++] = next;
      }
    }
    source = bytes;
    from = 0;
    to = count;
  }

  private byte[] escape() {
    byte next = take();
    switch (next) {
      case 'a': return new byte[] {7};
      case 'b': return new byte[] {'\b'};
      case 'f': return new byte[] {'\f'};
      case 'n': return new byte[] {'\n'};
      case 'r': return new byte[] {'\r'};
      case 't': return new byte[] {'\t'};
      case 'v': return new byte[] {11};
      case 'u': return letter(4);
      case 'U': return letter(8);
      case 'x': return isHex(at) ? new byte[] {(byte) digits(16, 2)} : new byte[] {next};
      default:
    }
    if (next < '0' || next > '7') return new byte[] {next};
    at--;
    return new byte[] {(byte) digits(8, next < '4' ? 3 : 2)};
  }

  /** Return a letter in UTF-8 by its number; the u alone where no number of that length is behind it. */
  private byte[] letter(int length) {
    for (int i = 0; i < length; i++) if (!isHex(at + i)) return new byte[] {yson[at - 1]};
    int number = (int) digits(16, length);
    if (!Character.isValidCodePoint(number)) throw broken("an escape that is not a letter");
    return new String(Character.toChars(number)).getBytes(StandardCharsets.UTF_8);
  }

  private boolean isHex(int position) {
    return position < yson.length && Character.digit((char) yson[position], 16) >= 0;
  }

  private long digits(int base, int most) {
    long value = 0;
    for (int i = 0; i < most && at < yson.length && Character.digit((char) yson[at], base) >= 0; i++) {
      value = value * base + Character.digit((char) yson[at++], base);
    }
    return value;
  }

  private boolean isUtf8() {
    int i = from;
    while (i < to) {
      int first = source[i++];
      if (first >= 0) continue;
      int more = (first & 0xe0) == 0xc0 ? 1 : (first & 0xf0) == 0xe0 ? 2 : (first & 0xf8) == 0xf0 ? 3 : 0;
      if (more == 0 || i + more > to) return false;
      int number = first & (0x3f >> more);
      for (int end = i + more; i < end; i++) {
        if ((source[i] & 0xc0) != 0x80) return false;
        number = number << 6 | source[i] & 0x3f;
      }
      int least = more == 1 ? 0x80 : more == 2 ? 0x800 : 0x10000;
      if (number < least || number > 0x10ffff || number >= 0xd800 && number < 0xe000) return false;
    }
    return true;
  }

  private void escaped() {
    for (int i = from; i < to; i++) {
      byte next = source[i];
      if (next >= 0 && next < ' ') {
        int letter = "\b\t\n\f\r".indexOf((char) next);
        put('\\');
        if (letter >= 0) put((byte) "btnfr".charAt(letter));
        else put("u00" + (char) HEX[next >> 4] + (char) HEX[next & 15]);
      } else {
        if (next == '"' || next == '\\') put('\\');
        put(next);
      }
    }
  }

  private void base64() {
    put(Base64.getEncoder().encode(Arrays.copyOfRange(source, from, to)));
  }

  // -- bytes

  /** Return the next byte that is not white space, or END; it stays. */
  private int peek() {
    while (at < yson.length) {
      byte next = yson[at];
      if (next != ' ' && (next < '\t' || next > '\r')) return next & 0xff;
      at++;
    }
    return END;
  }

  private byte take() {
    if (at == yson.length) throw broken("the value ends too early");
    return yson[at++];
  }

  private static boolean isLetter(int next) {
    return next >= 'a' && next <= 'z' || next >= 'A' && next <= 'Z' || next == '_';
  }

  private static boolean isDigit(int next) {
    return next >= '0' && next <= '9';
  }

  private void put(int next) {
    room(1);
    json[size++] = (byte) next;
  }

  private void put(String text) {
    put(ascii(text));
  }

  private void put(byte[] bytes) {
    room(bytes.length);
    System.arraycopy(bytes, 0, json, size, bytes.length);
    size += bytes.length;
  }

  private void room(int more) {
    if (size + more > json.length) json = Arrays.copyOf(json, Math.max(size + more, json.length * 2));
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.ISO_8859_1);
  }

  /** Return the first bytes of the value for a message, those that are not printed as \\xff. */
  private String beginning() {
    StringBuilder shown = new StringBuilder();
    for (int i = 0; i < Math.min(yson.length, SHOWN); i++) {
      if (yson[i] >= ' ' && yson[i] < 127) shown.append((char) yson[i]);
      else shown.append("\\x").append((char) HEX[yson[i] >> 4 & 15]).append((char) HEX[yson[i] & 15]);
    }
    return shown.append(yson.length > SHOWN ? "..." : "").toString();
  }

  private IllegalArgumentException broken(String what) {
    return new IllegalArgumentException("broken YSON, " + what + " at byte " + at + " of " + yson.length + ": " + beginning());
  }
}
