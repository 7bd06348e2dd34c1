package ytstream;

import java.util.Collections;
import java.util.List;
import tech.ytsaurus.client.SerializationResolver;
import tech.ytsaurus.client.request.AbstractModifyRowsRequest;
import tech.ytsaurus.client.request.RequestBase;
import tech.ytsaurus.client.rpc.RpcClientRequestBuilder;
import tech.ytsaurus.core.tables.TableSchema;
import tech.ytsaurus.rpcproxy.ERowModificationType;

/** A ModifyRows request whose rows are on the wire already. */
final class Rowset extends AbstractModifyRowsRequest {
  final byte[] bytes;

  Rowset(String path, TableSchema table, int rows, byte[] bytes) {
    this(path, table, Collections.nCopies(rows, ERowModificationType.RMT_WRITE), bytes);
  }

  /** {@code kinds} says of each row what is done with it. */
  Rowset(String path, TableSchema table, List kinds, byte[] bytes) {
    super(draft(path, table, kinds));
    this.bytes = bytes;
  }

  private static Draft draft(String path, TableSchema table, List kinds) {
    Draft draft = new Draft();
    draft.setPath(path);
    draft.setSchema(table);
    draft.setRowModificationTypes(kinds);
    return draft;
  }

  public void convertValues(SerializationResolver resolver) {}

  public void serializeRowsetTo(RpcClientRequestBuilder to) {
    to.attachments().add(bytes);
  }

  public RequestBase.Builder toBuilder() {
    throw new UnsupportedOperationException();
  }

  private static final class Draft extends AbstractModifyRowsRequest.Builder {
    protected RequestBase.Builder self() {
      return this;
    }

    public RequestBase build() {
      throw new UnsupportedOperationException();
    }
  }
}
