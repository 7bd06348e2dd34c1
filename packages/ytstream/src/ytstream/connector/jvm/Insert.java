package ytstream;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.List;
import java.util.ListIterator;
import tech.ytsaurus.client.ApiServiceTransaction;
import tech.ytsaurus.client.request.ModifyRowsRequest;
import tech.ytsaurus.core.tables.TableSchema;

/** Writes rows that the driver has, as one request: by py4j, value by value, a thousand take half a second. */
public final class Insert {
  private Insert() {}

  /** Write them in the transaction. {@code rows} is JSON: a list of rows, each a list of values in the table's order. */
  public static void json(ApiServiceTransaction transaction, String path, TableSchema table, String rows) throws Exception {
    ModifyRowsRequest.Builder request = (ModifyRowsRequest.Builder) ModifyRowsRequest.builder();
    request.setPath(path);
    request.setSchema(table);
    for (Object row : (List) new ObjectMapper().readValue(rows, List.class)) request.addInsert(wide((List) row));
    Flight.result(transaction.modifyRows(request.build()));
  }

  /** The client takes a whole number only as a Long. */
  private static List wide(List row) {
    for (ListIterator each = row.listIterator(); each.hasNext(); ) {
      Object value = each.next();
      if (value instanceof Integer) each.set(Long.valueOf(((Integer) value).longValue()));
    }
    return row;
  }
}
