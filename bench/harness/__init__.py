"""The benchmark: Portcullis and its peers on the same work, one proxy core each."""
