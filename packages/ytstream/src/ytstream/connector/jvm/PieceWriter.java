package ytstream;

import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.io.SequenceInputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Collections;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import tech.ytsaurus.client.CompoundClient;
import tech.ytsaurus.client.TableRowsSerializer;
import tech.ytsaurus.client.TableWriter;
import tech.ytsaurus.client.request.CreateNode;
import tech.ytsaurus.client.request.SerializationContext;
import tech.ytsaurus.client.request.TransactionalOptions;
import tech.ytsaurus.client.request.WriteTable;
import tech.ytsaurus.core.GUID;
import tech.ytsaurus.core.cypress.CypressNodeType;
import tech.ytsaurus.core.cypress.YPath;
import tech.ytsaurus.rpcproxy.ERowsetFormat;
import tech.ytsaurus.rpcproxy.ERowsetKind;
import tech.ytsaurus.rpcproxy.TRowsetDescriptor;
import tech.ytsaurus.ysontree.YTreeNode;

/** A static table that one task writes, under a master transaction. Rows go to it as the encoder has them. */
final class PieceWriter {
  private final CompoundClient yt;
  private final YTreeNode attributes;
  private final YPath path;
  private final String name;
  private final TransactionalOptions transaction;
  private final Encoder encoder;
  private final Rows rows;
  private TableWriter writer;
  private long count;
  private long bytes;

  PieceWriter(CompoundClient yt, YTreeNode attributes, String path, String name, String transaction, Encoder encoder) {
    this.yt = yt;
    this.attributes = attributes;
    this.path = YPath.simple(path);
    this.name = name;
    this.transaction = new TransactionalOptions(GUID.valueOf(transaction));
    this.encoder = encoder;
    rows = new Rows(attributes.mapNode().getOrThrow("schema").asList());
  }

  void add(InternalRow row, int most) throws Exception {
    encoder.add(row);
    count++;
    if (encoder.size() >= most) send(encoder.finish());
  }

  /** Write rows that a task has encoded. */
  void addBlock(byte[] block) throws Exception {
    send(block);
    count += ByteBuffer.wrap(block).order(ByteOrder.LITTLE_ENDIAN).getLong();
  }

  /** Take the rows back if none was sent, and they have at most so many bytes; else return null. */
  byte[] taken(int most) {
    return writer == null && encoder.size() <= most ? encoder.finish() : null;
  }

  /** End the table; return its line: see Pieces.write. */
  String closed(Long begin) throws Exception {
    if (encoder != null && encoder.rows() > 0) send(encoder.finish());
    Flight.result(writer.close());
    return "part " + begin + " " + name + " " + count + " " + bytes + "\n";
  }

  void cancel() {
    if (writer != null) writer.cancel();
  }

  private void send(byte[] block) throws Exception {
    if (writer == null) writer = opened();
    rows.bytes = block;
    bytes += rows.bytes.length;
    List sent = Collections.singletonList(rows.bytes);
    while (!writer.write(sent, null)) Flight.result(writer.readyEvent()); // the window is full
    rows.isNamed = true;
  }

  private TableWriter opened() throws Exception {
    CreateNode.Builder create = CreateNode.builder();
    create.setPath(path);
    create.setType(CypressNodeType.TABLE);
    create.setAttributes(attributes.asMap());
    create.setTransactionalOptions(transaction);
    Flight.result(yt.createNode(create.build()));
    WriteTable.Builder write = WriteTable.builder();
    write.setPath(path);
    write.setSerializationContext(new Context(rows));
    write.setNeedRetries(false); // they would repeat a part of the rows; the batch runs again
    write.setTransactionalOptions(transaction);
    return (TableWriter) Flight.result(yt.writeTable((WriteTable) write.build()));
  }

  /** Hands a rowset over as it is (YTsaurus client, RawTableWriterImpl.write). */
  private static final class Rows implements TableRowsSerializer {
    private final TRowsetDescriptor named;
    private final TRowsetDescriptor plain;
    /** A block adds names to those of the blocks before (YTsaurus, rpc_proxy, WriteTable). */
    private boolean isNamed;
    private byte[] bytes;

    Rows(List columns) {
      TRowsetDescriptor.Builder made = TRowsetDescriptor.newBuilder();
      made.setWireFormatVersion(1);
      made.setRowsetKind(ERowsetKind.RK_UNVERSIONED);
      made.setRowsetFormat(ERowsetFormat.RF_YT_WIRE);
      plain = made.build();
      for (Object column : columns) {
        String name = ((YTreeNode) column).mapNode().getString("name");
        made.addNameTableEntries(TRowsetDescriptor.TNameTableEntry.newBuilder().setName(name).build());
      }
      named = made.build();
    }

    public TRowsetDescriptor getRowsetDescriptor() {
      return isNamed ? plain : named;
    }

    public void write(List block) {}

    public int size() {
      return 8 + bytes.length;
    }

    /** The second part of a block, its size in front (YTsaurus client, TableRowsSerializerUtil). */
    public InputStream flush() {
      byte[] size = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(bytes.length).array();
      return new SequenceInputStream(new ByteArrayInputStream(size), new ByteArrayInputStream(bytes));
    }
  }

  private static final class Context extends SerializationContext {
    Context(Rows rows) {
      rowsetFormat = ERowsetFormat.RF_YT_WIRE;
      tableRowsSerializer = rows;
    }
  }
}
