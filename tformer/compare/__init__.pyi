from tformer.compare.comparison import Comparison as Comparison
from tformer.compare.comparison import compare as compare
