package org.arenite;

/** Messages of a conversation as JSON for {@link Chat#render}. */
public final class Messages {
  private final StringBuilder json = new StringBuilder();

  /** Appends a message and returns this. */
  public Messages add(String role, String content) {
    begin(role);
    quote(content);
    json.append('}');
    return this;
  }

  /** Appends a message with images before its text, as parts, and returns this. */
  public Messages add(String role, String content, int nImages) {
    begin(role);
    json.append('[');
    for (int i = 0; i < nImages; ++i) {
      json.append("{\"type\":\"image\"},");
    }
    json.append("{\"type\":\"text\",\"text\":");
    quote(content);
    json.append("}]}");
    return this;
  }

  @Override
  public String toString() {
    return "[" + json + "]";
  }

  private void begin(String role) {
    json.append(json.length() == 0 ? "" : ",").append("{\"role\":");
    quote(role);
    json.append(",\"content\":");
  }

  private void quote(String text) {
    json.append('"');
    for (int i = 0; i < text.length(); ++i) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        json.append('\\').append(c);
      } else if (c < ' ') {
        json.append("\\u00").append(c < 16 ? "0" : "").append(Integer.toHexString(c));
      } else {
        json.append(c);
      }
    }
    json.append('"');
  }
}
