package ytstream;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import tech.ytsaurus.client.ApiServiceMethodTable;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.client.SerializationResolver;
import tech.ytsaurus.client.request.AbstractLookupRowsRequest;
import tech.ytsaurus.client.request.HighLevelRequest;
import tech.ytsaurus.client.request.RequestBase;
import tech.ytsaurus.client.rpc.RequestWithResponseBuilder;
import tech.ytsaurus.client.rpc.RpcOptions;
import tech.ytsaurus.core.YtTimestamp;
import tech.ytsaurus.core.common.YTsaurusError;
import tech.ytsaurus.core.tables.TableSchema;
import tech.ytsaurus.rpcproxy.TReqLookupRows;
import tech.ytsaurus.rpcproxy.TRspLookupRows;

/**
 * One LookupRows request: keys as they are on the wire. It goes to the table's id, since a proxy keeps what a path meant
 * for some seconds (YTsaurus, table_mount_cache_detail.cpp), and through the root client: the request has no transaction,
 * and one "in" a transaction is one at its start timestamp (ApiServiceTransaction.lookupRows).
 */
final class Ask extends Call {
  private final Keys request;

  Ask(CompoundClient yt, Moment moment, TableSchema keys, StructType wanted, byte[] bytes, int count) {
    super(yt, "look up " + count + " keys of " + moment.title);
    request = new Keys(moment, keys, names(keys, wanted), bytes);
    send();
  }

  /** The columns to ask for. None would mean all, so a key column stands for the row. */
  private static List names(TableSchema keys, StructType wanted) {
    ArrayList found = new ArrayList();
    StructField[] fields = wanted.fields();
    for (int i = 0; i < fields.length; i++) found.add(Columns.original(fields[i]));
    if (found.isEmpty()) found.add(keys.getColumnName(0));
    return found;
  }

  /**
   * A table, a right or a column that is not there: ResolveError (YTsaurus, core/ytree/public.h), AuthorizationError
   * (client/security_client/public.h), ColumnNotFound (client/tablet_client/public.h). The next try of the batch finds out
   * which table the path means.
   */
  boolean isPermanent(YTsaurusError error) {
    return error.matches(500) || error.matches(901) || error.matches(1726);
  }

  RequestWithResponseBuilder message(RpcOptions options) {
    RequestWithResponseBuilder message = new RequestWithResponseBuilder(ApiServiceMethodTable.LOOKUP_ROWS.createHeader(options),
        TReqLookupRows.newBuilder(), TRspLookupRows.parser(), options);
    HighLevelRequest writable = request.asLookupRowsWritable();
    writable.writeHeaderTo(message.header());
    writable.writeTo(message);
    return message;
  }

  /** The keys as they were sent. */
  byte[] keys() {
    return request.bytes;
  }

  private static final class Keys extends AbstractLookupRowsRequest {
    private final byte[] bytes;

    Keys(Moment moment, TableSchema keys, List columns, byte[] bytes) {
      super(draft(moment, keys, columns));
      this.bytes = bytes;
    }

    private static Draft draft(Moment moment, TableSchema keys, List columns) {
      Draft draft = new Draft();
      draft.setPath("#" + moment.table);
      draft.setSchema(keys);
      draft.addLookupColumns(columns);
      // Never with partial results: a tablet that fails would look like missing keys.
      draft.setKeepMissingRows(true);
      draft.setTimestamp(YtTimestamp.valueOf(moment.timestamp));
      return draft;
    }

    public void convertValues(SerializationResolver resolver) {}

    public void serializeRowsetTo(List attachments) {
      attachments.add(bytes);
    }

    public RequestBase.Builder toBuilder() {
      throw new UnsupportedOperationException();
    }
  }

  private static final class Draft extends AbstractLookupRowsRequest.Builder {
    protected RequestBase.Builder self() {
      return this;
    }

    public RequestBase build() {
      throw new UnsupportedOperationException();
    }
  }
}
