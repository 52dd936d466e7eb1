// Prompter: messages and texts to token ids, by the bundle's own template and tokenizer. Used by
// one thread at a time, but that another one may encode images beside it.
#pragma once

#include <arenite/arenite.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/arenite/model.h"
#include "tools/serve/image_reader.h"

namespace arn::serve {

struct Prompt {
  std::string text;
  std::vector<int32_t> ids;
  tool::ImageList images;  // whose tokens are among the ids
};

class Prompter {
 public:
  // The model must outlive it. Throws tool::Error if there is no tokenizer. `images`: null, or what
  // encodes images, which must outlive it too.
  explicit Prompter(const tool::Model& model, ImageReader* images = nullptr);

  bool has_template() const { return chat_ != nullptr; }
  // True if the parser of replies knows how the model writes its reasoning.
  bool has_reasoning() const { return !reasoning_end_.empty(); }
  bool takes_images() const { return images_ != nullptr; }
  // Encodes the images of messages. Throws ApiError.
  tool::ImageList Encode(const std::vector<ImageSource>& images) const {
    return images.empty() ? tool::ImageList() : images_->Read(images);
  }
  // Renders messages, tools and variables, each JSON or "", with the images of the messages. Throws
  // ApiError if the template refuses them.
  Prompt OfMessages(const std::string& messages, const std::string& tools,
                    const std::string& variables, tool::ImageList images) const;
  Prompt OfText(const std::string& text) const;
  // Returns the tokens of a sentence and of the mark that ends the reasoning.
  std::vector<int32_t> ReasoningEnd(const std::string& sentence) const;
  // Returns what a token adds to a text; "" for a part of a character.
  std::string TextOf(int32_t id) const;
  const tool::Model& model() const { return model_; }

 private:
  struct DestroyChat {
    void operator()(arn_chat* chat) const { arn_chat_destroy(chat); }
  };

  const tool::Model& model_;
  ImageReader* const images_;
  std::unique_ptr<arn_chat, DestroyChat> chat_;
  std::string reasoning_end_;
  arn_detokenizer in_text_ = {};  // behind some token
};

}  // namespace arn::serve
