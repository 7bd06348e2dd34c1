package ytstream;

import java.util.HashMap;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import tech.ytsaurus.core.tables.ColumnSchema;
import tech.ytsaurus.core.tables.TableSchema;
import tech.ytsaurus.spyt.serializers.InternalRowDeserializer;

/** The columns of a source: how Spark holds each, and which it is in a rowset. */
final class Columns {
  final int count;
  final int[] kinds;
  final DataType[] types;
  private final StructField[] fields;
  private final HashMap ordinals = new HashMap();
  private final InternalRowDeserializer[] deserializers;

  Columns(StructType schema) {
    fields = schema.fields();
    count = fields.length;
    kinds = new int[count];
    types = new DataType[count];
    deserializers = new InternalRowDeserializer[count];
    for (int i = 0; i < count; i++) {
      types[i] = fields[i].dataType();
      // A uuid is 16 bytes in the table, and text in Spark (SPYT, WireDeserializer).
      boolean isUuid = fields[i].metadata().contains("yt_logical_type")
          && fields[i].metadata().getString("yt_logical_type").equals("uuid");
      kinds[i] = isUuid ? Kind.OTHER : Kind.of(types[i]);
      ordinals.put(original(fields[i]), Integer.valueOf(i));
    }
  }

  /** The name of the column in the table (SPYT, MetadataFields). */
  static String original(StructField field) {
    return field.metadata().contains("original_name") ? field.metadata().getString("original_name") : field.name();
  }

  /** For each column of a rowset, by its id there: which one it is here, or -1. */
  int[] ordinals(TableSchema rowset) {
    int[] found = new int[rowset.getColumnsCount()];
    int known = 0;
    for (int id = 0; id < found.length; id++) {
      String name = rowset.getColumnName(id);
      // As SPYT calls the position (StreamingUtils).
      if (name.equals("$tablet_index") || name.equals("$row_index")) name = "__spyt_streaming_src_" + name.substring(1);
      Integer ordinal = (Integer) ordinals.get(name);
      found[id] = ordinal == null ? -1 : ordinal.intValue();
      if (ordinal != null) known++;
    }
    if (known < count) throw new IllegalStateException("the rows have not all columns of " + ordinals.keySet());
    return found;
  }

  /** SPYT's converter of values of one column. */
  InternalRowDeserializer deserializer(int ordinal) {
    if (deserializers[ordinal] == null) {
      InternalRowDeserializer made = new InternalRowDeserializer(new StructType(new StructField[] {fields[ordinal]}));
      ColumnSchema column = new ColumnSchema.Builder(original(fields[ordinal]), tech.ytsaurus.typeinfo.TiType.yson()).build();
      made.updateSchema(new TableSchema.Builder().setStrict(false).setUniqueKeys(false).add(column).build());
      deserializers[ordinal] = made;
    }
    return deserializers[ordinal];
  }
}
