package ytstream;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * The driver's disk, for the checkpoint of a query without state. Hadoop's own file system starts a process, chmod, for each
 * file that it makes (RawLocalFileSystem.setPermission, Shell), and each batch makes four with their checksums. Nobody else
 * may enter the folder (Python, tempfile), and no start reads the files.
 */
public final class DriverFiles extends RawLocalFileSystem {
  private static final String SCHEME = "ytstream";

  /** Let paths with the scheme lead here, and return the URI of a folder. {@code spark} is what queries copy. */
  public static String uri(String folder, Configuration spark) throws IOException {
    String key = "fs." + SCHEME + ".impl";
    spark.set(key, DriverFiles.class.getName());
    // Hadoop keeps the file system for later: not each loader of a configuration knows the class.
    Configuration own = new Configuration(spark);
    own.setClassLoader(DriverFiles.class.getClassLoader());
    return FileSystem.get(URI.create(SCHEME + ":///"), own).makeQualified(new Path(folder)).toString();
  }

  public URI getUri() {
    return URI.create(SCHEME + ":///");
  }

  public String getScheme() {
    return SCHEME;
  }

  public void setPermission(Path file, FsPermission permission) {}
}
