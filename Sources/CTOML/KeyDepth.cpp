#include "KeyDepth.h"

namespace {

class Scanner {
  public:
    Scanner(std::string_view text, unsigned limit) : text(text), limit(limit) {}

    std::optional<ctoml_position> scan() {
        while (at < text.size()) {
            const char byte = text[at];
            switch (byte) {
                case '"':
                case '\'': skip_string(byte); continue;
                case '#': skip_comment(); continue;
                case '.':
                    dots++;
                    if (dots >= limit) return position();
                    break;
                case '\n':
                    line++;
                    line_start = at + 1;
                    dots = 0;
                    break;
                case '=':
                case ',':
                case '[':
                case '{': dots = 0; break;
                default: break;
            }
            at++;
        }
        return std::nullopt;
    }

  private:
    std::string_view text;
    unsigned limit;
    size_t at = 0;
    unsigned dots = 0;
    uint32_t line = 1;
    size_t line_start = 0;

    ctoml_position position() const {
        uint32_t column = 1;
        for (size_t index = line_start; index < at; index++) {
            const bool is_continuation = (static_cast<unsigned char>(text[index]) & 0xC0) == 0x80;
            if (!is_continuation) column++;
        }
        return {line, column};
    }

    // Whether three of these quotes stand here.
    bool is_triple(char quote) const {
        return at + 2 < text.size() && text[at] == quote && text[at + 1] == quote
            && text[at + 2] == quote;
    }

    void skip_comment() {
        while (at < text.size() && text[at] != '\n') at++;
    }

    void skip_string(char quote) {
        const bool is_multi_line = is_triple(quote);
        at += is_multi_line ? 3 : 1;
        while (at < text.size()) {
            const char byte = text[at];
            if (byte == '\\' && quote == '"') {
                // The escaped byte may be a line feed, which the next round counts.
                at++;
                if (at < text.size() && text[at] != '\n') at++;
            } else if (byte == '\n') {
                // A syntax error on one line; within a multi-line string just another line.
                if (!is_multi_line) return;
                at++;
                line++;
                line_start = at;
            } else if (byte == quote && !is_multi_line) {
                at++;
                return;
            } else if (is_triple(quote)) {
                at += 3;
                // Up to two quotes may stand directly before the closing three.
                for (int extra = 0; extra < 2 && at < text.size(); extra++) {
                    if (text[at] == quote) at++;
                }
                return;
            } else {
                at++;
            }
        }
    }
};

}  // namespace

std::optional<ctoml_position> too_deep_key(std::string_view text, unsigned limit) {
    return Scanner(text, limit).scan();
}
