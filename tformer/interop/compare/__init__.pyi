from tformer.interop.compare.comparison import Comparison as Comparison
from tformer.interop.compare.comparison import compare as compare
